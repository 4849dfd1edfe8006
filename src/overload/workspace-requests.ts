import { TransientMap } from "../concurrency/transient.ts";
import { Failure } from "../contract/failure.ts";
import { CONNECTIONS } from "./bounds.ts";

export type WorkspaceRequests = ReturnType<typeof createWorkspaceRequests>;

/**
 * Counts the open requests of each workspace, and keeps one workspace from using all connections.
 * @param max most open connections
 * @param onShed called when a request is refused
 */
export function createWorkspaceRequests(max: number, onShed: () => void) {
  const { share } = CONNECTIONS;
  const open = new TransientMap<string, number>();
  let total = 0;
  return {
    /**
     * Begins a request of a workspace.
     * @returns a function that ends it
     * @throws Failure overloaded while the workspace uses more than half of the connections and three quarters of all
     *   are in use
     */
    begin(workspaceId: string): () => void {
      const own = open.get(workspaceId) ?? 0;
      if (own >= max * share.own && total >= max * share.all) {
        onShed();
        throw new Failure("overloaded", {
          message: "This workspace uses most of the connections. Send the request again after the stated time.",
        });
      }
      open.set(workspaceId, own + 1);
      total++;
      return () => {
        total--;
        const left = (open.get(workspaceId) ?? 0) - 1;
        if (left > 0) open.set(workspaceId, left);
        else open.delete(workspaceId);
      };
    },
  };
}
