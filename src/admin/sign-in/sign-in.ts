import { isWellFormed } from "../../admission/secret.ts";
import { Failure } from "../../contract/failure.ts";
import type { Shares } from "../../overload/shares.ts";
import { runAs } from "../shared/run-as.ts";
import { createAttempts } from "./attempts.ts";
import { refusedOperatorToken } from "./operator-sessions.ts";
import { type OwnerSession, refusedLink, refusedToken } from "./owner-sessions.ts";
import type { Opened, Session, Sessions } from "./sessions.ts";
import type { Tokens } from "./tokens.ts";

/**
 * Opens a session. A valid token is accepted however many attempts from its source failed, because the source may be a
 * proxy with many users.
 * @param token token of an owner or operator, or the secret of a sign-in link of an owner
 * @param source source of the attempt, such as an IP address; the rate of failed attempts is limited for each
 * @throws Failure `unauthenticated`, with one message for every token that is not valid and one for every link;
 *   `rate_limited`; `overloaded`
 */
export type SignIn<S> = (token: string, source: string) => Promise<Opened<S>>;

export function createOwnerSignIn(
  tokens: Tokens,
  sessions: Sessions<OwnerSession>,
  shares: Shares,
): SignIn<OwnerSession> {
  async function open(token: string): Promise<Opened<OwnerSession>> {
    if (isWellFormed(token, "li_")) return shares.run("sign-in links", () => sessions.open(token));
    if (!isWellFormed(token, "ow_")) throw refusedToken();
    // Costs no statement for most tokens that are not valid.
    const actor = await tokens.authenticate(token, "owner");
    return runAs(shares, actor, () => sessions.open(token));
  }
  return limited(open, (token) => (token.startsWith("li_") ? refusedLink() : refusedToken()));
}

export function createOperatorSignIn(tokens: Tokens, sessions: Sessions<Session>): SignIn<Session> {
  async function open(token: string): Promise<Opened<Session>> {
    // Costs no statement for most tokens that are not valid.
    await tokens.authenticate(token, "operator");
    return sessions.open(token);
  }
  return limited(open, refusedOperatorToken);
}

/** Limits the rate of failed attempts. @param refusal the failure for a token that is not valid */
function limited<S>(open: (token: string) => Promise<Opened<S>>, refusal: (token: string) => Failure): SignIn<S> {
  const attempts = createAttempts();
  return async (token, source) => {
    try {
      return await open(token);
    } catch (error) {
      // An owner token is no operator token.
      if (!(error instanceof Failure) || !["unauthenticated", "missing_scope"].includes(error.kind)) throw error;
      attempts.fail(source);
      throw refusal(token);
    }
  };
}
