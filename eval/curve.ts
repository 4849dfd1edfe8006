/** Scores of the weak and the strong model on one question. */
export interface Point {
  weak: number;
  strong: number;
  /** Questions with a higher rank go to the strong model first. Later numbers decide if earlier ones are equal. */
  rank: readonly number[];
}

/**
 * How much of the gap between weak and strong accuracy is recovered ("performance gap recovered", RouteLLM):
 * PGR(x) = (acc(x) − weak) / (strong − weak) at a share x of strong calls.
 */
export interface Curve {
  /** Average PGR: its integral over x; 0.5 for a random order. */
  apgr: number;
  /** Smallest x with a PGR of at least 0.5 and 0.8. */
  cpt50: number;
  cpt80: number;
}

/**
 * Computes the curve of an order by the trapezoidal rule. Uses the expected value over all orders of questions with
 * equal rank, so the result does not depend on chance.
 * @returns undefined if the strong model is not better than the weak one
 */
export function curve(points: readonly Point[]): Curve | undefined {
  const gap = points.reduce((sum, { weak, strong }) => sum + strong - weak, 0);
  if (points.length === 0 || gap <= 0) return undefined;
  const ordered = points.toSorted((a, b) => compare(b.rank, a.rank));
  let [x, pgr, apgr] = [0, 0, 0];
  const reached = new Map<number, number>();
  for (let start = 0; start < ordered.length; ) {
    const first = ordered[start];
    let end = start;
    let gain = 0;
    for (let next = first; next && first && compare(next.rank, first.rank) === 0; next = ordered[end]) {
      gain += next.strong - next.weak;
      end += 1;
    }
    const [width, rise] = [(end - start) / points.length, gain / gap];
    for (const share of [0.5, 0.8]) {
      if (!reached.has(share) && pgr + rise >= share - 1e-9) reached.set(share, x + (width * (share - pgr)) / rise);
    }
    apgr += width * (pgr + rise / 2);
    [x, pgr, start] = [x + width, pgr + rise, end];
  }
  return { apgr, cpt50: reached.get(0.5) ?? 1, cpt80: reached.get(0.8) ?? 1 };
}

function compare(a: readonly number[], b: readonly number[]): number {
  const at = a.findIndex((value, index) => value !== b[index]);
  return at < 0 ? 0 : (a[at] ?? 0) - (b[at] ?? 0);
}
