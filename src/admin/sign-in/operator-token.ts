import { createSecret, hashSecret } from "../../admission/secret.ts";
import type { Pool } from "../../store/pool.ts";
import { record, WHOLE_SERVICE } from "../shared/audit.ts";
import { tokenId } from "./tokens.ts";

/**
 * Replaces all operator tokens with a new one, for an operator who has lost the token and has access to the database.
 * The others stop working on every replica within a second, and sessions that they opened end.
 * @returns the token, which is not stored, and how many it replaces
 */
export function replaceOperatorTokens(pool: Pool): Promise<{ token: string; id: string; replaced: number }> {
  const token = createSecret("op_");
  const hash = hashSecret(token);
  const id = tokenId(hash);
  return pool.tx(async (query) => {
    const others = await query<{ hash: Buffer }>("delete from operator_tokens returning secret_hash as hash");
    await query("insert into operator_tokens (secret_hash) values ($1)", [hash]);
    const replaced = others.map((other) => tokenId(other.hash));
    const actor = { kind: "service", id: "command line" } as const;
    await record(query, actor, WHOLE_SERVICE, "operator_token.replace", { id, replaced });
    return { token, id, replaced: others.length };
  });
}
