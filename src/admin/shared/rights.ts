import { Failure } from "../../contract/failure.ts";
import type { Query } from "../../store/pool.ts";
import { type Actor, confinedTo, developerOf } from "./audit.ts";

/**
 * The keys whose use an actor may see.
 * @param keyId the only key that the actor asks for; empty: all
 * @returns identifiers; undefined: all of the workspace
 */
export async function visibleKeys(query: Query, actor: Actor, keyId: string): Promise<string[] | undefined> {
  const wanted = keyId === "" ? undefined : [keyId.replaceAll("\0", "")];
  const developer = developerOf(actor);
  if (developer === undefined) return wanted;
  const own = await query<{ id: string }>("select id from api_keys where workspace_id = $1 and person_id = $2", [
    confinedTo(actor),
    developer,
  ]);
  const ids = own.map(({ id }) => id);
  return wanted ? ids.filter((id) => wanted.includes(id)) : ids;
}

/** @throws Failure `missing_scope` for an operator, with what to do instead */
export function refuseOperator({ kind }: Actor, what: string): void {
  if (kind === "owner" || kind === "member") return;
  const message =
    `Operators cannot ${what}. It needs a member with the right role, or the owner token of the workspace; ` +
    "chorus owners create makes one, which the audit log shows.";
  throw new Failure("missing_scope", { message });
}

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
