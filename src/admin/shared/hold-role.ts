import { Failure } from "../../contract/failure.ts";
import type { Query } from "../../store/pool.ts";
import type { Actor } from "./audit.ts";

/**
 * Holds the role of a member until the transaction ends: who removes them, or changes the role, waits and then finds
 * what the transaction has written.
 * @throws Failure `missing_scope` when the role has changed since the call was authenticated
 */
export async function holdRole(query: Query, actor: Actor): Promise<void> {
  if (actor.kind !== "member") return;
  const held = await query("select from members where workspace_id = $1 and person_id = $2 and role = $3 for share", [
    actor.workspaceId,
    actor.id,
    actor.role,
  ]);
  if (held.length > 0) return;
  const message = "Your role in the workspace has changed. Reload the page to see what you may do.";
  throw new Failure("missing_scope", { message });
}
