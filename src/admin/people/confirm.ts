import { setTimeout as sleep } from "node:timers/promises";
import { hashSecret } from "../../admission/secret.ts";
import type { OidcConfig } from "../../config/oidc.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure } from "../../contract/failure.ts";
import type { Pool } from "../../store/pool.ts";
import { errorFacts, type Log } from "../../telemetry/log.ts";
import { isOperator } from "./claims.ts";
import { storePerson } from "./person.ts";
import type { Provider, ProviderTokens, SignedIn } from "./provider.ts";
import { providerFacts } from "./provider-failure.ts";
import { seal, unseal } from "./seal.ts";
import type { PersonSession } from "./sessions.ts";

/**
 * Times in milliseconds. The provider is asked before the next request once its answer is `oldAfter` old: with the
 * longest call, which is made of up to five, a claim that is lost ends access within ten minutes.
 */
const MS = { oldAfter: 9 * 60_000, retry: 30_000, longestCall: 25_000, look: 100 };

/** What confirmation needs of the sessions. */
interface Parts {
  readonly pool: Pool;
  readonly provider: Provider;
  readonly config: OidcConfig;
  readonly clock: Clock;
  readonly log: Log;
  /** Reads a session again. @throws Failure unauthenticated */
  read(secret: string): Promise<PersonSession>;
}

/**
 * Creates the function that keeps sessions true to what the provider says. One request of a session asks the provider,
 * on whatever replica; the others wait for it, because a refresh token may be used once. While the provider cannot be
 * asked, the session goes on as it was.
 * @returns a function that returns the session as it is then. @throws Failure unauthenticated
 */
export function createConfirm(parts: Parts): (secret: string, session: PersonSession) => Promise<PersonSession> {
  const { pool, clock, read } = parts;

  /** @returns the tokens; undefined when another request asks */
  async function claim(hash: Buffer, retryAt: number): Promise<Buffer | undefined> {
    const now = clock();
    const [row] = await pool.query<{ tokens: Buffer }>(
      `update person_sessions set asking = true, retry_at = $3 where secret_hash = $1 and retry_at = $2
       returning tokens`,
      [hash, new Date(retryAt), new Date(now + MS.longestCall)],
    );
    return row?.tokens;
  }

  return async (secret, session) => {
    let current = session;
    for (let looks = 0; looks <= MS.longestCall / MS.look; looks += 1) {
      const { confirmedAt, retryAt, asking } = current.confirmation;
      const now = clock();
      if (now - confirmedAt < MS.oldAfter) return current;
      if (now >= retryAt) {
        const tokens = await claim(hashSecret(secret), retryAt);
        if (tokens) await ask(parts, secret, current, tokens);
      } else if (asking) await sleep(MS.look);
      else return current;
      current = await read(secret);
    }
    return current;
  };
}

/** Asks the provider, and stores what it says. */
async function ask(parts: Parts, secret: string, session: PersonSession, sealed: Buffer): Promise<void> {
  const { pool, provider, clock, log } = parts;
  const tokens = JSON.parse(unseal(secret, sealed)) as ProviderTokens;
  let answer: SignedIn | undefined;
  try {
    const renewed = await provider.renew(tokens);
    // The earlier refresh token may be used up, also when the rest fails.
    if (renewed) await keep(pool, secret, renewed.tokens);
    answer = renewed && (await provider.confirm(renewed, session.confirmation.subject));
  } catch (error) {
    if (!(error instanceof Failure && error.kind === "upstream_failed")) throw error;
    const facts = { provider: providerFacts(error), cause: errorFacts(error) };
    log.warn(facts, "the identity provider does not answer; who is signed in stays");
    await pool.query("update person_sessions set asking = false, retry_at = $2 where secret_hash = $1", [
      hashSecret(secret),
      new Date(clock() + MS.retry),
    ]);
    return;
  }
  if (answer) await store(parts, secret, answer);
  else {
    await pool.query("delete from person_sessions where secret_hash = $1", [hashSecret(secret)]);
    throw new Failure("unauthenticated", { message: "The identity provider has ended the session. Sign in again." });
  }
}

function keep(pool: Pool, secret: string, tokens: ProviderTokens): Promise<unknown> {
  const values = [hashSecret(secret), seal(secret, JSON.stringify(tokens))];
  return pool.query("update person_sessions set tokens = $2 where secret_hash = $1", values);
}

async function store({ pool, config, clock }: Parts, secret: string, { claims, tokens }: SignedIn): Promise<void> {
  const now = new Date(clock());
  await pool.tx(async (query) => {
    await storePerson(query, config, claims, now);
    await query(
      `update person_sessions set operator = $2, tokens = $3, confirmed_at = $4, retry_at = $4, asking = false
       where secret_hash = $1`,
      [hashSecret(secret), isOperator(claims, config.operators), seal(secret, JSON.stringify(tokens)), now],
    );
  });
}
