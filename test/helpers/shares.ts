import type { Ask, Post, Reply, SubjectGrant } from "../../src/admission/escrow/exchange.ts";
import { Shares } from "../../src/admission/escrow/shares.ts";
import { done, PLENTY } from "./replica.ts";

export const NO_USE = { requests: 0, input: 0 };

/** Headroom of a subject for `n` requests of the helper, and of what has no cap. */
export const headroomOf = (n: number, subject = "user:u", msLeft = 20_000): SubjectGrant => ({
  subject,
  extra: { ...PLENTY, credit: 10 * n, requests: n },
  msLeft,
});

/** A request of a subject. */
export const asked = (subject: string): Ask => ({ requestId: "q", hold: 10, input: 1, subjects: [subject] });
/** The end of a request that the headroom of the subject contains. */
export const postOf = (subject: string, charge: number): Post => ({
  ...{ requestId: "q", charge, output: 1, row: {} },
  shared: [subject],
});

/** An answer without headroom of subjects. */
export const NOTHING_ELSE = done([], PLENTY) as Extract<Reply, { state: "done" }>;

/** Shares of subjects that each have headroom for `n` requests. */
export function sharesOf(subjects: readonly string[], n: number): Shares {
  const shares = new Shares({ count: 0 });
  // Requests of the subjects ask for headroom, and the answer has it.
  shares.report(
    "exchange",
    subjects.map((subject) => ({ ...asked(subject), retryAt: 0 })),
    [],
    0,
    true,
  );
  const spare = { n, credit: 10, input: 1, output: 1 };
  const report = { used: NO_USE, held: { credit: 0, running: 0 }, returns: true, spare };
  const granted = subjects.map((subject) => headroomOf(n, subject));
  shares.receive(
    subjects.map((subject) => ({ subject, ...report })),
    { ...NOTHING_ELSE, subjects: granted },
    0,
  );
  return shares;
}
