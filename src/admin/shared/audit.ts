import { isMailTarget } from "../../contract/mail-address.ts";
import type { Role } from "../../contract/roles.ts";
import type { Query } from "../../store/pool.ts";

/**
 * Who makes a change: an operator, the owner of one workspace by its token, a person with a role in one workspace, or
 * the service itself. An operator who is a person has the identifier of that person.
 */
export type Actor = Readonly<
  | { kind: "operator"; id: string }
  | { kind: "owner"; id: string; workspaceId: string }
  | { kind: "member"; id: string; workspaceId: string; role: Role }
  | { kind: "service"; id: string }
>;

/** The actor of the first start, which creates the first workspace. */
export const BOOTSTRAP: Actor = { kind: "service", id: "bootstrap" };

/** The only workspace that an actor may see; undefined: all. */
export function confinedTo(actor: Actor): string | undefined {
  return "workspaceId" in actor ? actor.workspaceId : undefined;
}

/** The person to whose own keys and their use an actor is confined; undefined: all of the workspace. */
export function developerOf(actor: Actor): string | undefined {
  return actor.kind === "member" && actor.role === "developer" ? actor.id : undefined;
}

/**
 * Records a change in the table `audit`, in the transaction of the change.
 * @param action such as `key.create`
 * @param details the changed values; never a secret
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

/** The receiver of alerts as an entry shows it: of a webhook without its path, which may be a secret. */
export function auditedReceiver(url: string): string {
  return isMailTarget(url) ? url : (URL.parse(url)?.origin ?? "");
}

/** In place of a workspace: the entry concerns the service as a whole. */
export const WHOLE_SERVICE = "";
