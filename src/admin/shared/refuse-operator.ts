import { Failure } from "../../contract/failure.ts";
import type { Actor } from "./audit.ts";

/** @throws Failure `missing_scope` for an operator, with what to do instead */
export function refuseOperator({ kind }: Actor, what: string): void {
  if (kind === "owner" || kind === "member") return;
  const message =
    `Operators cannot ${what}. It needs a member with the right role, or the owner token of the workspace; ` +
    "chorus owners create makes one, which the audit log shows.";
  throw new Failure("missing_scope", { message });
}
