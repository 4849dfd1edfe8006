import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { createSecret, hashSecret } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import type { Pool } from "../../store/pool.ts";
import { record } from "../shared/audit.ts";
import { tokenId } from "../sign-in/tokens.ts";
import { findWorkspace, type WorkspaceAdmin } from "./workspace.ts";

/** Time in which a link can be used, in milliseconds. */
const LINK_MS = 15 * 60_000;

/**
 * Creates a link that signs one browser in to the console, once. The database stores the hash of its secret. The secret
 * is in the fragment of the path, which browsers do not send: no log of a server or proxy has it, and a program that
 * only fetches the page does not use the link up.
 */
export function createSignInLink(pool: Pool, clock: Clock): WorkspaceAdmin["createSignInLink"] {
  return async ({ workspace }, actor) => {
    const secret = createSecret("li_");
    const hash = hashSecret(secret);
    const [now, expiresAt] = [new Date(clock()), new Date(clock() + LINK_MS)];
    await pool.tx(async (query) => {
      const { id } = await findWorkspace(query, actor, workspace);
      await query("delete from sign_in_links where expires_at < $1", [now]);
      await query("insert into sign_in_links (secret_hash, workspace_id, expires_at) values ($1, $2, $3)", [
        hash,
        id,
        expiresAt,
      ]);
      await record(query, actor, id, "sign_in_link.create", { id: tokenId(hash), expires_at: expiresAt });
    });
    const path = `/console#sign-in=${secret}`;
    return { path, expiresAt: timestampFromDate(expiresAt) };
  };
}
