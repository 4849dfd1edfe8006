import type { Actor } from "../../src/accounts/audit.ts";

/** An operator, for tests that are about something else. */
export const OPERATOR: Actor = { kind: "operator", id: "tok_test" };
