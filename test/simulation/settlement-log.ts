import type { Headroom, Item } from "../../src/admission/escrow/exchange.ts";
import type { Account, Grant } from "./account.ts";

/** An item whose posts wait in the log. */
export interface Logged extends Pick<Item, "seq" | "posts" | "held" | "used" | "subjects"> {
  replica: string;
}

/** Number of the last item of a replica under its grant; 0: it has none. */
export function lastItemOf({ grants, log }: Account, replica: string): number {
  const waiting = log.filter((item) => item.replica === replica).map(({ seq }) => seq);
  return Math.max(grants.get(replica)?.seq ?? 0, ...waiting);
}

/** Charges of a replica that wait in the log. Its grant contains them. */
export function waitingOf({ log }: Account, replica: string): number {
  const posts = log.filter((item) => item.replica === replica).flatMap((item) => item.posts);
  return posts.reduce((sum, { charge }) => sum + charge, 0);
}

/** What a request is charged, posted or in the log; undefined: it is in neither. */
export function chargeOf({ posted, log }: Account, requestId: string): number | undefined {
  const waiting = log.flatMap(({ posts }) => posts).find((post) => post.requestId === requestId);
  return posted.get(requestId) ?? waiting?.charge;
}

/** Takes from a grant what its items have used, and notes what they have said. */
export function reduce(grant: Grant, items: readonly Logged[]): void {
  const posts = items.flatMap((item) => item.posts);
  const sum = (sizes: readonly number[]) => sizes.reduce((total, size) => total + size, 0);
  const less = (part: keyof Headroom, sizes: readonly number[]) => {
    grant[part] = Math.max(0, grant[part] - sum(sizes));
  };
  less(
    "credit",
    posts.map(({ charge }) => charge),
  );
  less(
    "output",
    posts.map(({ output }) => output),
  );
  for (const part of ["requests", "input"] as const) {
    less(
      part,
      items.map(({ used }) => used[part]),
    );
  }
  const { seq, held } = items.at(-1) as Logged;
  grant.seq = seq;
  grant.held = Math.min(held.credit, grant.credit);
  grant.running = Math.max(grant.running, held.running);
  grant.runningNow = held.running;
}
