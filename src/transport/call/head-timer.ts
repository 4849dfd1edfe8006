import type { Facts } from "../../generate/request-context.ts";

/** A wait that is so short is not worth another timer, in milliseconds. */
const SLACK_MS = 50;

/**
 * Calls `send` once, `ms` milliseconds after the admission of a request. Before that, a failure can still have a status
 * of its own.
 * @param facts of the request, in which admission notes its time
 * @returns a function that ends the wait
 */
export function onceAdmitted(facts: Pick<Facts, "admittedAt">, ms: number, send: () => void): () => void {
  const check = () => {
    const left = ms - (facts.admittedAt === undefined ? 0 : performance.now() - facts.admittedAt);
    if (left <= SLACK_MS && facts.admittedAt !== undefined) send();
    else timer = setTimeout(check, left);
  };
  let timer = setTimeout(check, ms);
  return () => clearTimeout(timer);
}
