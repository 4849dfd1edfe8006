import { randomBytes } from "node:crypto";
import { SETUP_LOCK } from "../store/migrate.ts";
import type { Pool, Query } from "../store/pool.ts";
import { MAX_SECRET_LENGTH, SCOPES } from "./authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "./secret.ts";

const MIN_SECRET_LENGTH = 16;

/** Name of the workspace that a new store begins with. */
const DEFAULT_WORKSPACE = "default";

/**
 * Makes the first workspace, API key and operator token of an empty store, and sees to it that given secrets work on any store.
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
  await query("insert into workspaces (id, name) values ($1, $2) on conflict (name) do nothing", [
    newId("ws_"),
    DEFAULT_WORKSPACE,
  ]);
  await query(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at)
     select id, $2, $3, $4, 'bootstrap', $5, date_trunc('milliseconds', now()) from workspaces where name = $1
     on conflict (secret_hash) do nothing`,
    [DEFAULT_WORKSPACE, newId("key_"), hashSecret(secret), prefixOf(secret), [...SCOPES]],
  );
}

function newId(prefix: "ws_" | "key_"): string {
  return prefix + randomBytes(12).toString("hex");
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
