import { randomBytes } from "node:crypto";
import { SCOPES } from "../admission/authenticate.ts";
import { createSecret, hashSecret, MAX_SECRET_LENGTH, prefixOf } from "../admission/secret.ts";
import { SETUP_LOCK } from "../store/migrate.ts";
import type { Pool, Query } from "../store/pool.ts";
import { bookCredit } from "./credits.ts";
import { BOOTSTRAP, record } from "./shared/audit.ts";
import { insertWorkspace } from "./workspaces/create.ts";

const MIN_SECRET_LENGTH = 16;

/** Name of the first workspace. */
export const DEFAULT_WORKSPACE = "default";

/** Credit of the first workspace, in millionths. At the default rates it pays two million output tokens. */
const STARTING_GRANT = { kind: "grant", amount: 1_000_000_000n, reference: "starting grant" } as const;

/** Secrets in clear text. */
export interface Secrets {
  /** Of an API key. */
  readonly apiKey: string;
  readonly operatorToken: string;
}

/** Secrets that an operator has chosen (`BOOTSTRAP_API_KEY`, `OPERATOR_TOKEN`). */
type GivenSecrets = { readonly [K in keyof Secrets]?: string | undefined };

/**
 * Checks the format of secrets: 16 to 512 visible ASCII characters.
 * @throws Error with the variable whose secret is not valid
 */
export function checkSecrets({ apiKey, operatorToken }: GivenSecrets): void {
  check("BOOTSTRAP_API_KEY", apiKey);
  check("OPERATOR_TOKEN", operatorToken);
}

/** Creates the secrets of a first start. */
export function createSecrets(): Secrets {
  return { apiKey: createSecret("ck_"), operatorToken: createSecret("op_") };
}

/** What `bootstrap` has done. */
interface Bootstrapped {
  /** The offered secrets that were stored, to be shown once. */
  readonly created: Partial<Secrets>;
  /** Whether there is no operator token, because none was given or offered. */
  readonly lacksOperator: boolean;
}

/**
 * Prepares a database for its first use: creates the first workspace with a starting grant, an API key and an operator
 * token. On any database it adds the given secrets. Several replicas may run it at once, and any number of times. A
 * given key that was revoked stays revoked.
 * @param given the exact secrets; the key gets every scope
 * @param offered each is used where none is given and the database has none. A call that is repeated with the same ones
 *   because the result of the first did not arrive returns them again. Null: none is created.
 */
export async function bootstrap(
  pool: Pool,
  given: GivenSecrets,
  offered: Secrets | null = createSecrets(),
): Promise<Bootstrapped> {
  return pool.tx(async (query) => {
    await query("select pg_advisory_xact_lock($1)", [SETUP_LOCK]);
    const newKey = given.apiKey ? undefined : await takes(query, "api_keys", offered?.apiKey);
    const newToken = given.operatorToken ? undefined : await takes(query, "operator_tokens", offered?.operatorToken);
    const created = { ...(newKey ? { apiKey: newKey } : {}), ...(newToken ? { operatorToken: newToken } : {}) };
    const { apiKey, operatorToken } = { ...given, ...created };
    const [found] = await query("select from workspaces limit 1");
    if (apiKey || !found) await addFirstWorkspace(query);
    if (apiKey) await addKey(query, apiKey);
    if (operatorToken) {
      await query("insert into operator_tokens (secret_hash) values ($1) on conflict do nothing", [
        hashSecret(operatorToken),
      ]);
    }
    const [row] = await query<{ lacks: boolean }>("select not exists (select from operator_tokens) as lacks");
    return { created, lacksOperator: row?.lacks === true };
  });
}

/** The offered secret if the table is empty, or was when an earlier call stored the secret. */
async function takes(
  query: Query,
  table: "api_keys" | "operator_tokens",
  offered: string | undefined,
): Promise<string | undefined> {
  if (!offered) return undefined;
  const [row] = await query<{ takes: boolean }>(
    `select not exists (select from ${table}) or exists (select from ${table} where secret_hash = $1) as takes`,
    [hashSecret(offered)],
  );
  return row?.takes ? offered : undefined;
}

/** Creates the first workspace, unless it exists. */
async function addFirstWorkspace(query: Query): Promise<void> {
  const workspaceId = await insertWorkspace(query, BOOTSTRAP, DEFAULT_WORKSPACE, "personal");
  if (workspaceId) await bookCredit(query, BOOTSTRAP, workspaceId, STARTING_GRANT);
}

/** Adds a key, unless it exists. */
async function addKey(query: Query, secret: string): Promise<void> {
  const [added] = await query<{ id: string; name: string; scopes: string[]; workspace_id: string }>(
    `insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at)
     select id, $2, $3, $4, 'bootstrap', $5, date_trunc('milliseconds', now()) from workspaces where name = $1
     on conflict (secret_hash) do nothing
     returning id, name, scopes, workspace_id`,
    [DEFAULT_WORKSPACE, `key_${randomBytes(12).toString("hex")}`, hashSecret(secret), prefixOf(secret), [...SCOPES]],
  );
  if (!added) return;
  const { workspace_id, ...details } = added;
  await record(query, BOOTSTRAP, workspace_id, "key.create", { ...details, expires_at: null });
}

function check(name: string, secret: string | undefined): void {
  if (secret === undefined) return;
  const { length } = secret;
  if (length < MIN_SECRET_LENGTH || length > MAX_SECRET_LENGTH || !/^[\x21-\x7e]+$/.test(secret)) {
    throw new Error(
      `${name} must have ${MIN_SECRET_LENGTH} to ${MAX_SECRET_LENGTH} visible ASCII characters without spaces, ` +
        "because it is sent in a header. Choose another, or unset it to have one created.",
    );
  }
}
