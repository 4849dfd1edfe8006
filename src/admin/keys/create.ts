import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { CreateKeyResponseSchema, ScopeSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { SCOPES } from "../../admission/authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "../../admission/secret.ts";
import { Failure, invalid } from "../../contract/failure.ts";
import { readEnum } from "../../contract/json-names.ts";
import type { Pool } from "../../store/pool.ts";
import { record } from "../shared/audit.ts";
import { checkLabel, readExpiry } from "../shared/fields.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { COLUMNS, type KeyAdmin, type KeyRow, keyMessage } from "./key.ts";

/**
 * Creates a key. The secret is in the response and is not stored.
 * @param clock returns milliseconds since 1970
 */
export function createKey(pool: Pool, clock: () => number): KeyAdmin["createKey"] {
  return async ({ workspace, name, scopes: numbers, expiresAt }, actor) => {
    checkLabel("name", name);
    const scopes = numbers.length > 0 ? [...new Set(numbers.map(readScope))] : [...SCOPES];
    const now = clock();
    const expiry = readExpiry(expiresAt, now);
    const secret = createSecret("ck_");
    const key = await pool.tx(async (query) => {
      const { id: workspaceId } = await findWorkspace(query, actor, workspace);
      const id = `key_${randomBytes(12).toString("hex")}`;
      const [row] = await query<KeyRow>(
        `with k as (
           insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8) returning *)
         select ${COLUMNS} from k join workspaces w on w.id = k.workspace_id`,
        [workspaceId, id, hashSecret(secret), prefixOf(secret), name, scopes, new Date(now), expiry],
      );
      if (!row) throw new Failure("unknown_entity", { field: "workspace" });
      await record(query, actor, workspaceId, "key.create", { id, name, scopes, expires_at: expiry });
      return row;
    });
    return create(CreateKeyResponseSchema, { key: keyMessage(key), secret });
  };
}

function readScope(number: number, i: number): string {
  const scope = readEnum(`scopes[${i}]`, ScopeSchema, number);
  if (scope === "") throw invalid(`scopes[${i}]`, `A scope is one of ${SCOPES.join(", ")}.`);
  return scope;
}
