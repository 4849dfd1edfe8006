import { test } from "vitest";
import { checkEdge, EDGES } from "../helpers/edges.ts";

/** Rounds at the edge of each limit. */
const ROUNDS = 200;

for (const [name, account] of Object.entries(EDGES)) {
  test(`admits exactly as many requests on two replicas as ${name} allow, ${ROUNDS} times`, (t) =>
    checkEdge(t, account, ROUNDS));
}
