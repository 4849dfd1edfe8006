import type { Query } from "../store/pool.ts";

/** Whoever holds a good token: an operator, or the owner of one workspace. */
export type Actor = Readonly<
  | { kind: "operator"; id: string }
  | { kind: "owner"; id: string; workspaceId: string }
  | { kind: "service"; id: string }
>;

/** The service itself, when it makes the first workspace. */
export const BOOTSTRAP: Actor = { kind: "service", id: "bootstrap" };

/** Workspace that an actor is confined to; undefined: none. */
export function confinedTo(actor: Actor): string | undefined {
  return actor.kind === "owner" ? actor.workspaceId : undefined;
}

/**
 * Notes a change in the table `audit`, in the transaction that makes it.
 * @param action such as `key.create`
 * @param details what was changed to what; never a secret
 */
export async function record(
  query: Query,
  actor: Actor,
  workspaceId: string,
  action: string,
  details: object,
): Promise<void> {
  await query("insert into audit (workspace_id, actor_kind, actor_id, action, details) values ($1, $2, $3, $4, $5)", [
    workspaceId,
    actor.kind,
    actor.id,
    action,
    JSON.stringify(details),
  ]);
}
