import { isWellFormed } from "../../admission/secret.ts";
import { Failure } from "../../failure.ts";
import { runAs, type Shares } from "../shares.ts";
import { createAttempts } from "./attempts.ts";
import { type OpenedSession, refusedLink, refusedToken, type Sessions } from "./sessions.ts";
import type { Owners } from "./tokens.ts";

/**
 * Opens a session for the owner of a workspace. A valid token is accepted however many attempts from its source failed,
 * because the source may be a proxy with many users.
 * @param token owner token, or the secret of a sign-in link
 * @param source source of the attempt, such as an IP address; the rate of failed attempts is limited for each
 * @throws Failure `unauthenticated`, with one message for every token that is not valid and one for every link;
 *   `rate_limited`; `overloaded`
 */
export type SignIn = (token: string, source: string) => Promise<OpenedSession>;

export function createSignIn(owners: Owners, sessions: Sessions, shares: Shares): SignIn {
  const attempts = createAttempts();

  /** @returns undefined for a token that is not valid */
  async function open(token: string): Promise<OpenedSession | undefined> {
    const isLink = isWellFormed(token, "li_");
    if (!isLink && !isWellFormed(token, "ow_")) return undefined;
    try {
      if (isLink) return await shares.run("sign-in links", () => sessions.open(token));
      // Costs no statement for most tokens that are not valid.
      const actor = await owners.authenticate(token, "owner");
      return await runAs(shares, actor, () => sessions.open(token));
    } catch (error) {
      if (error instanceof Failure && error.kind === "unauthenticated") return undefined;
      throw error;
    }
  }

  return async (token, source) => {
    const opened = await open(token);
    if (opened) return opened;
    attempts.fail(source);
    throw token.startsWith("li_") ? refusedLink() : refusedToken();
  };
}
