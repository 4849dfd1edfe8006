import { Failure } from "../../failure.ts";
import { createAttempts } from "./attempts.ts";
import { type OpenedOperatorSession, type OperatorSessions, refusedOperatorToken } from "./operator-sessions.ts";
import type { Owners } from "./tokens.ts";

/**
 * Opens a session for an operator. A valid token is accepted however many attempts from its source failed, because the
 * source may be a proxy with many users.
 * @throws Failure `unauthenticated`, with one message for every other token; `rate_limited`; `overloaded`
 */
export type OperatorSignIn = (token: string, source: string) => Promise<OpenedOperatorSession>;

export function createOperatorSignIn(owners: Owners, sessions: OperatorSessions): OperatorSignIn {
  const attempts = createAttempts();
  return async (token, source) => {
    try {
      // Costs no statement for most tokens that are not valid.
      await owners.authenticate(token, "operator");
      return await sessions.open(token);
    } catch (error) {
      // An owner token is no operator token.
      if (!(error instanceof Failure) || !["unauthenticated", "missing_scope"].includes(error.kind)) throw error;
      attempts.fail(source);
      throw refusedOperatorToken();
    }
  };
}
