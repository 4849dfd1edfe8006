import { randomBytes } from "node:crypto";
import { hashSecret, isWellFormed } from "../../admission/secret.ts";
import type { OidcConfig } from "../../config/oidc.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure, invalid } from "../../contract/failure.ts";
import type { Shares } from "../../overload/shares.ts";
import type { Pool } from "../../store/pool.ts";
import { errorFacts, type Log } from "../../telemetry/log.ts";
import { createAttempts } from "../sign-in/attempts.ts";
import type { Opened } from "../sign-in/sessions.ts";
import { createConfirm } from "./confirm.ts";
import { acceptInvitation } from "./invitations.ts";
import { insertPlaygroundKey } from "./keys.ts";
import { type Attempt, createProvider, type Provider, type ProviderTokens } from "./provider.ts";
import { providerFacts } from "./provider-failure.ts";
import { unseal } from "./seal.ts";
import { createPersonSessions, type PersonSession } from "./sessions.ts";

export type People = ReturnType<typeof createPeople>;

interface PeopleParts {
  readonly pool: Pool;
  readonly config: OidcConfig;
  readonly clock: Clock;
  readonly log: Log;
  readonly shares: Shares;
}

/** Whether a secret is that of a person's session. */
export function isPersonSecret(secret: string | undefined): boolean {
  return secret !== undefined && isWellFormed(secret, "ps_");
}

/** Signs people in through the OpenID provider. Methods throw Failure, `overloaded` without a database. */
export function createPeople({ pool, config, clock, log, shares }: PeopleParts) {
  const provider = createProvider(config, clock);
  const sessions = createPersonSessions(pool, config, clock);
  const read = (secret: string | undefined) => sessions.authenticate(secret);
  const confirm = createConfirm({ pool, provider, config, clock, log, read });
  const attempts = createAttempts();

  /** Finds the session of a secret, and asks the provider when its answer is old. @throws Failure unauthenticated */
  async function authenticate(secret: string | undefined): Promise<PersonSession> {
    const session = await read(secret);
    return secret === undefined ? session : confirm(secret, session);
  }

  /** Changes the workspace that a session shows. @throws Failure unauthenticated, unknown_entity */
  async function choose(secret: string | undefined, workspaceId: string): Promise<PersonSession> {
    const session = await authenticate(secret);
    if (!session.workspaces.some(({ id }) => id === workspaceId))
      throw new Failure("unknown_entity", { field: "workspace", message: "You are no member of this workspace." });
    await pool.tx(async (query) => {
      const values = [hashSecret(secret ?? ""), workspaceId];
      await query("update person_sessions set workspace_id = $2 where secret_hash = $1", values);
      await insertPlaygroundKey(query, workspaceId, session.person.id, new Date(clock()));
    });
    return read(secret);
  }

  return {
    /** What the sign-in button calls the provider. */
    providerName: config.name,
    /** Begins a sign-in. @returns where to send the browser, and what it must keep. @throws Failure upstream_failed */
    async begin(callback: URL): Promise<{ url: URL; attempt: Attempt }> {
      const attempt = { state: random(), nonce: random(), verifier: random() };
      return { url: await logged(log, provider.begin(callback, attempt)), attempt };
    },
    /**
     * Ends a sign-in. The rate of failed attempts is limited for each source.
     * @param current address that the provider sent the browser to
     * @throws Failure upstream_failed, unauthenticated, rate_limited
     */
    async finish(current: URL, attempt: Attempt, source: string): Promise<Opened<PersonSession>> {
      try {
        const signedIn = await logged(log, provider.finish(current, attempt));
        return await shares.run("people", () => sessions.open(signedIn));
      } catch (error) {
        if (error instanceof Failure && error.kind === "unauthenticated") attempts.fail(source);
        throw error;
      }
    },
    authenticate,
    /** As `authenticate`, with one of the person's workspaces if the shown one is none any more. */
    async show(secret: string | undefined): Promise<PersonSession> {
      const session = await authenticate(secret);
      const [first] = session.workspaces;
      return session.shown || !first ? session : choose(secret, first.id);
    },
    choose,
    /** Uses an invitation up, and shows its workspace. @throws Failure unauthenticated, invalid_request */
    async accept(secret: string | undefined, invitation: string, source: string): Promise<PersonSession> {
      const { person } = await authenticate(secret);
      const accepted = await shares.run("people", () => acceptInvitation(pool, invitation, person.id, clock()));
      if (accepted) return choose(secret, accepted);
      attempts.fail(source);
      const message = "The invitation was used before or has expired. Ask an owner of the workspace for another one.";
      throw invalid("token", message);
    },
    /** Ends a session. @returns where the browser signs out at the provider, if there is such an address */
    signOut: (secret: string | undefined, back: URL) =>
      signOut({ pool, provider, close: sessions.close }, secret, back),
  };
}

const random = (): string => randomBytes(32).toString("base64url");

/** Logs why the provider cannot be used, which only an operator can mend. */
async function logged<T>(log: Log, work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    if (!(error instanceof Failure && error.kind === "rate_limited"))
      log.warn(
        { provider: providerFacts(error), cause: errorFacts(error) },
        "a sign-in through the identity provider failed",
      );
    throw error;
  });
}

async function signOut(
  { pool, provider, close }: { pool: Pool; provider: Provider; close(secret: string): Promise<void> },
  secret: string | undefined,
  back: URL,
): Promise<URL | undefined> {
  if (secret === undefined || !isPersonSecret(secret)) return undefined;
  const [row] = await pool.query<{ tokens: Buffer }>("select tokens from person_sessions where secret_hash = $1", [
    hashSecret(secret),
  ]);
  await close(secret);
  if (!row) return undefined;
  const tokens = JSON.parse(unseal(secret, row.tokens)) as ProviderTokens;
  // The session has ended here. While the provider does not answer, it cannot end there.
  return provider.signOutUrl(tokens, back).catch(() => undefined);
}
