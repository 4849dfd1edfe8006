import { SessionClient } from "../session/session-client.ts";

/** The session of a signed-in operator. */
export interface OperatorSession {
  /** Identifier of the operator token, as the audit names it. */
  readonly operator: string;
}

/** Sessions of operators. */
export const operators = new SessionClient<OperatorSession>("/console/operator/session", ({ operator = "" }) => ({
  operator,
}));
