import type { Shares } from "../../overload/shares.ts";
import { type Actor, confinedTo } from "./audit.ts";

/** Runs work of an owner or member with the share of the owners of the workspace. An operator needs none. */
export function runAs<T>(shares: Shares, actor: Actor, work: () => Promise<T>): Promise<T> {
  // A key of its own, because callers must not use up the share of their owner.
  const workspaceId = confinedTo(actor);
  return workspaceId === undefined ? work() : shares.run(`owner of ${workspaceId}`, work);
}

/**
 * The same methods, which owners call with their share.
 * @param prepare runs before each call. It gets the workspace of an owner or member; undefined: an operator calls
 */
export function shared<A extends Record<string, (request: never, actor: Actor) => Promise<unknown>>>(
  shares: Shares,
  admin: A,
  prepare?: (workspaceId: string | undefined) => Promise<void>,
): A {
  const methods = Object.entries(admin).map(([name, method]) => [
    name,
    (request: never, actor: Actor) =>
      runAs(shares, actor, async () => {
        await prepare?.(confinedTo(actor));
        return method(request, actor);
      }),
  ]);
  return Object.fromEntries(methods);
}
