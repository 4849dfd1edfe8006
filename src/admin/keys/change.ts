import { create } from "@bufbuild/protobuf";
import { RevokeKeyResponseSchema, UpdateKeyResponseSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import type { Authenticator } from "../../admission/authenticate.ts";
import { Failure, invalid } from "../../contract/failure.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { type Actor, confinedTo, record } from "../shared/audit.ts";
import { checkLabel, readExpiry } from "../shared/fields.ts";
import { COLUMNS, type KeyAdmin, type KeyRow, keyMessage } from "./key.ts";

/** Forgets changed keys. Other replicas apply a change within a second. */
type Cache = Pick<Authenticator, "forget">;

/**
 * Renames a key or changes when it expires.
 * @param clock returns milliseconds since 1970
 */
export function updateKey(pool: Pool, cache: Cache, clock: () => number): KeyAdmin["updateKey"] {
  return async ({ id, name, expiry }, actor) => {
    if (name === undefined && expiry.case === undefined) {
      throw invalid("name", "Set at least one of name, expires_at and never_expires.");
    }
    if (name !== undefined) checkLabel("name", name);
    const expiresAt = expiry.case === "expiresAt" ? readExpiry(expiry.value, clock()) : null;
    const changed = await changeKey(pool, cache, actor, id, async (query, key) => {
      const after = { name: name ?? key.name, expiresAt: expiry.case === undefined ? key.expiresAt : expiresAt };
      await query("update api_keys set name = $2, expires_at = $3 where id = $1", [id, after.name, after.expiresAt]);
      const details = { id, name: after.name, expires_at: after.expiresAt };
      await record(query, actor, key.workspaceId, "key.update", details);
      return { ...key, ...after };
    });
    return create(UpdateKeyResponseSchema, { key: keyMessage(changed) });
  };
}

/**
 * Revokes a key. Revoking it again changes nothing.
 * @param clock returns milliseconds since 1970
 */
export function revokeKey(pool: Pool, cache: Cache, clock: () => number): KeyAdmin["revokeKey"] {
  return async ({ id }, actor) => {
    const changed = await changeKey(pool, cache, actor, id, async (query, key) => {
      if (key.revokedAt) return key;
      const revokedAt = new Date(clock());
      await query("update api_keys set revoked_at = $2 where id = $1", [id, revokedAt]);
      await record(query, actor, key.workspaceId, "key.revoke", { id });
      return { ...key, revokedAt };
    });
    return create(RevokeKeyResponseSchema, { key: keyMessage(changed) });
  };
}

/**
 * @param make changes the key, which is locked until the transaction ends, and returns it as it is afterwards
 * @throws Failure `unknown_entity`, or `invalid_request` for the console's key
 */
async function changeKey(
  pool: Pool,
  cache: Cache,
  actor: Actor,
  id: string,
  make: (query: Query, key: KeyRow) => Promise<KeyRow>,
): Promise<KeyRow> {
  const { hash, key } = await pool.tx(async (query) => {
    const [row] = await query<KeyRow & { hash: Buffer }>(
      `select ${COLUMNS}, k.secret_hash as hash from api_keys k join workspaces w on w.id = k.workspace_id
       where k.id = $1 and ($2::text is null or k.workspace_id = $2) for update of k`,
      [id.replaceAll("\0", ""), confinedTo(actor) ?? null],
    );
    if (!row) {
      // The message does not repeat the identifier, because it may be a secret that was pasted by mistake.
      throw new Failure("unknown_entity", {
        field: "id",
        message: "There is no key with this identifier. Identifiers begin with key_; list the keys to see them.",
      });
    }
    if (row.console) throw invalid("id", "This is the console's own key, which cannot be changed.");
    const { hash, ...before } = row;
    return { hash, key: await make(query, before) };
  });
  cache.forget(hash);
  return key;
}
