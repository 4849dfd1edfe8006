import type { Actor } from "../../admin/shared/audit.ts";
import type { Caller } from "../../admission/authenticate.ts";
import { Failure } from "../../contract/failure.ts";
import type { BodySender } from "../../overload/body-budget.ts";

/** Who sends a request: a caller with an API key, or an owner or operator with a token. */
export interface Identity {
  readonly caller?: Caller;
  readonly actor?: Actor;
}

/** Whose share of the memory for bodies a request uses. */
export function senderOf({ caller, actor }: Identity): BodySender {
  return caller ?? { admin: actor?.id ?? "" };
}

/** @throws Failure unauthenticated when no caller has been authenticated */
export function callerOf({ caller }: Identity): Caller {
  if (!caller) throw new Failure("unauthenticated");
  return caller;
}

/** @throws Failure unauthenticated when no owner or operator has been authenticated */
export function actorOf({ actor }: Identity): Actor {
  if (!actor) throw new Failure("unauthenticated");
  return actor;
}
