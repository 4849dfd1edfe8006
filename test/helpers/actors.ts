import type { Actor } from "../../src/admin/shared/audit.ts";

/** An operator, for tests that do not test authorization. */
export const OPERATOR: Actor = { kind: "operator", id: "tok_test" };
