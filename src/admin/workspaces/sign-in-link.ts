import { createSecret, hashSecret } from "../../admission/secret.ts";
import { orOverloaded, type Pool, type Query } from "../../store/pool.ts";
import { type Actor, record } from "../audit.ts";
import { tokenId } from "../sign-in/tokens.ts";
import { findWorkspace } from "./workspaces.ts";

/** Time in which a link can be used, in milliseconds. */
const LINK_MS = 15 * 60_000;

/** A link that signs one browser in to the console, once. */
export interface SignInLink {
  /**
   * Path on the public listener. The secret is in the fragment, which browsers do not send: no log of a server or proxy
   * has it, and a program that only fetches the page does not use the link up.
   */
  readonly path: string;
  readonly expiresAt: Date;
}

/** Creates links for the owner of a workspace. The database stores the hash of their secret. */
export interface SignInLinks {
  /**
   * @param workspace name or identifier
   * @throws Failure `unknown_entity`; `overloaded` when the database is unavailable
   */
  create(actor: Actor, workspace: string): Promise<SignInLink>;
}

/** @param clock the time in milliseconds since 1970 */
export function createSignInLinks(pool: Pool, clock: () => number = Date.now): SignInLinks {
  return {
    async create(actor, workspace) {
      const secret = createSecret("li_");
      const hash = hashSecret(secret);
      const expiresAt = new Date(clock() + LINK_MS);
      await orOverloaded(
        pool.tx(async (query) => {
          const { id } = await findWorkspace(query, actor, workspace);
          await query("delete from sign_in_links where expires_at < $1", [new Date(clock())]);
          await query("insert into sign_in_links (secret_hash, workspace_id, expires_at) values ($1, $2, $3)", [
            hash,
            id,
            expiresAt,
          ]);
          await record(query, actor, id, "sign_in_link.create", { id: tokenId(hash), expires_at: expiresAt });
        }),
      );
      return { path: `/console#sign-in=${secret}`, expiresAt };
    },
  };
}

/**
 * Uses a link up.
 * @param now milliseconds since 1970
 * @returns the identifier of its workspace; undefined when the link is unknown, used or expired
 */
export async function takeSignInLink(query: Query, hash: Buffer, now: number): Promise<string | undefined> {
  const [link] = await query<{ workspace: string }>(
    "delete from sign_in_links where secret_hash = $1 and expires_at > $2 returning workspace_id as workspace",
    [hash, new Date(now)],
  );
  return link?.workspace;
}
