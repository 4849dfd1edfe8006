import { randomBytes } from "node:crypto";
import { MAX_SECRET_LENGTH, SCOPES } from "../admission/authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "../admission/secret.ts";
import { SETUP_LOCK } from "../store/migrate.ts";
import type { Pool, Query } from "../store/pool.ts";
import { BOOTSTRAP } from "./audit.ts";
import { bookCredit } from "./credit.ts";
import { insertWorkspace } from "./workspaces.ts";

const MIN_SECRET_LENGTH = 16;

/** Name of the workspace that a new store begins with. */
const DEFAULT_WORKSPACE = "default";

/** What that workspace is given to begin with, in millionths of a credit: with the default rates, enough for two million output tokens. */
const STARTING_GRANT = { kind: "grant", amount: 1_000_000_000n, reference: "starting grant" } as const;

/**
 * Makes the first workspace with a starting grant, the first API key and operator token of an empty store, and sees to it that given secrets work on any store.
 * Safe when several replicas start at once, and any number of times. A given key that was revoked stays revoked.
 * @param given.apiKey the exact secret of an API key, 16 to 512 visible ASCII characters (`BOOTSTRAP_API_KEY`); it gets every scope
 * @param given.operatorToken likewise for an operator (`OPERATOR_TOKEN`)
 * @returns the secrets that were made up here, for printing once: on an empty store, those that were not given
 * @throws Error naming the variable whose secret cannot be used.
 */
export async function bootstrap(
  pool: Pool,
  given: { apiKey?: string | undefined; operatorToken?: string | undefined },
): Promise<{ apiKey?: string; operatorToken?: string }> {
  check("BOOTSTRAP_API_KEY", given.apiKey);
  check("OPERATOR_TOKEN", given.operatorToken);
  return pool.tx(async (query) => {
    await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
    const isEmpty = (await query("select from workspaces limit 1")).length === 0;
    const made = isEmpty
      ? {
          ...(given.apiKey ? {} : { apiKey: createSecret("ck_") }),
          ...(given.operatorToken ? {} : { operatorToken: createSecret("op_") }),
        }
      : {};
    const { apiKey, operatorToken } = { ...given, ...made };
    if (apiKey) await addKey(query, apiKey);
    if (operatorToken) {
      await query("insert into operator_tokens (secret_hash) values ($1) on conflict do nothing", [
        hashSecret(operatorToken),
      ]);
    }
    return made;
  });
}

async function addKey(query: Query, secret: string): Promise<void> {
  const made = await insertWorkspace(query, BOOTSTRAP, DEFAULT_WORKSPACE, "personal");
  if (made) await bookCredit(query, BOOTSTRAP, made, STARTING_GRANT);
  await query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at)
     select id, $2, $3, $4, 'bootstrap', $5, date_trunc('milliseconds', now()) from workspaces where name = $1
     on conflict (secret_hash) do nothing`,
    [DEFAULT_WORKSPACE, `key_${randomBytes(12).toString("hex")}`, hashSecret(secret), prefixOf(secret), [...SCOPES]],
  );
}

function check(name: string, secret: string | undefined): void {
  if (secret === undefined) return;
  const { length } = secret;
  if (length < MIN_SECRET_LENGTH || length > MAX_SECRET_LENGTH || !/^[\x21-\x7e]+$/.test(secret)) {
    throw new Error(
      `${name} must have ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} visible ASCII characters without spaces, because it travels in a header. ` +
        `Choose another, or unset it to have one made.`,
    );
  }
}
