import type { Shares } from "../../overload/shares.ts";
import type { Actor } from "./audit.ts";

/** Runs work of an owner with the owner's share. An operator needs none. */
export function runAs<T>(shares: Shares, actor: Actor, work: () => Promise<T>): Promise<T> {
  // A key of its own, because callers must not use up the share of their owner.
  return actor.kind === "owner" ? shares.run(`owner of ${actor.workspaceId}`, work) : work();
}

/**
 * The same methods, which owners call with their share.
 * @param prepare runs before each call. It gets the workspace of an owner; undefined: an operator calls
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
        await prepare?.(actor.kind === "owner" ? actor.workspaceId : undefined);
        return method(request, actor);
      }),
  ]);
  return Object.fromEntries(methods);
}
