import type { Weights } from "../src/engine/difficulty/difficulty.ts";
import { FEATURES } from "../src/engine/difficulty/signals.ts";

/** Features of a prompt, and how often the models of its file failed on it. */
export interface Sample {
  /** Values of `FEATURES`, in their order. */
  values: Float64Array;
  /** Mean rate of failure of all models of the file, 0 to 1. */
  failure: number;
  /** File of the recording. Failures are standardised within a set, because the models differ between sets. */
  set: string;
}

/** Ridge penalty, in rows. It pulls the weights to their priors. */
const PENALTY = 1000;

/** Largest weight of a set, in rows. Keeps the largest set from dominating the others. */
const SET_ROWS = 1800;

/**
 * Fits the weights of the features by a ridge regression of the rate of failure, standardised within each set. A slope
 * and an offset then make the score a logit of the mean rate of failure. Deterministic.
 */
export function fitWeights(samples: readonly Sample[]): Weights {
  const weights = balance(samples);
  const scales = FEATURES.map((_, index) =>
    scale(
      samples.map(({ values }) => values[index] ?? 0),
      weights,
    ),
  );
  const rows = centred(
    samples,
    samples.map(({ values }) => scales.map(({ mean, deviation }, at) => ((values[at] ?? 0) - mean) / deviation)),
  );
  const target = targets(samples);
  const size = FEATURES.length;
  const matrix = Array.from({ length: size }, (_, at) =>
    Array.from({ length: size + 1 }, (_, to) => {
      const penalty = to === at ? PENALTY : to === size ? PENALTY * (FEATURES[at]?.prior ?? 0) : 0;
      const sum = rows.reduce(
        (all, row, one) =>
          all + (weights[one] ?? 0) * (row[at] ?? 0) * (to < size ? (row[to] ?? 0) : (target[one] ?? 0)),
        0,
      );
      return sum + penalty;
    }),
  );
  const solved = solve(matrix);
  const score = (values: Float64Array) =>
    scales.reduce(
      (sum, { mean, deviation }, at) => sum + ((solved[at] ?? 0) * ((values[at] ?? 0) - mean)) / deviation,
      0,
    );
  const { slope, offset } = calibrate(
    samples.map(({ values, failure }, at) => ({ score: score(values), failure, weight: weights[at] ?? 0 })),
  );
  const features = FEATURES.map(({ high }, at) => ({
    name: high,
    mean: round(scales[at]?.mean ?? 0),
    deviation: round(scales[at]?.deviation ?? 1),
    weight: round(slope * (solved[at] ?? 0)),
  }));
  return { features, offset: round(offset) };
}

function round(value: number): number {
  return Number(value.toPrecision(5));
}

/** Slope and offset with which the logistic function of a score is the rate of failure, by Platt scaling. */
function calibrate(outcomes: ReadonlyArray<{ score: number; failure: number; weight: number }>) {
  let [slope, offset] = [1, 0];
  for (let step = 0; step < 50; step++) {
    let [g0, g1, h00, h01, h11] = [0, 1e-3 * (slope - 1), 1e-9, 0, 1e-3];
    for (const { score, failure, weight } of outcomes) {
      const likely = 1 / (1 + Math.exp(-(slope * score + offset)));
      const [miss, spread] = [weight * (likely - failure), weight * likely * (1 - likely)];
      g0 += miss;
      g1 += miss * score;
      h00 += spread;
      h01 += spread * score;
      h11 += spread * score * score;
    }
    const determinant = h00 * h11 - h01 * h01;
    if (!(determinant > 1e-12)) break;
    offset -= (h11 * g0 - h01 * g1) / determinant;
    slope -= (h00 * g1 - h01 * g0) / determinant;
  }
  return { slope: Number.isFinite(slope) ? slope : 1, offset: Number.isFinite(offset) ? offset : 0 };
}

/** Weight of each sample in the sum of squares. */
function balance(samples: readonly Sample[]): number[] {
  const rows = new Map<string, number>();
  for (const { set } of samples) rows.set(set, (rows.get(set) ?? 0) + 1);
  return samples.map(({ set }) => Math.min(1, SET_ROWS / (rows.get(set) ?? 1)));
}

/** Standardises the failures within each set. */
function targets(samples: readonly Sample[]): number[] {
  const sets = Map.groupBy(samples, ({ set }) => set);
  const scales = new Map([...sets].map(([set, some]) => [set, scale(some.map(({ failure }) => failure))]));
  return samples.map(({ set, failure }) => {
    const { mean, deviation } = scales.get(set) ?? { mean: 0, deviation: 1 };
    return (failure - mean) / deviation;
  });
}

/** Subtracts the mean row of each set, because only differences within a set are fitted. */
function centred(samples: readonly Sample[], rows: readonly number[][]): number[][] {
  const sets = Map.groupBy(rows.keys(), (at) => samples[at]?.set);
  const means = new Map(
    [...sets].map(([set, some]) => [
      set,
      FEATURES.map((_, at) => some.reduce((sum, row) => sum + (rows[row]?.[at] ?? 0), 0) / some.length),
    ]),
  );
  return rows.map((row, one) => row.map((value, at) => value - (means.get(samples[one]?.set)?.[at] ?? 0)));
}

function scale(values: readonly number[], weights: readonly number[] = values.map(() => 1)) {
  const total = weights.reduce((sum, weight) => sum + weight, 0) || 1;
  const mean = values.reduce((sum, value, at) => sum + value * (weights[at] ?? 0), 0) / total;
  const variance = values.reduce((sum, value, at) => sum + (weights[at] ?? 0) * (value - mean) ** 2, 0) / total;
  return { mean, deviation: variance > 1e-12 ? Math.sqrt(variance) : 1 };
}

/** Solves a system of linear equations, given as rows of coefficients and right side, by Gaussian elimination. */
function solve(matrix: number[][]): number[] {
  for (const [at, row] of matrix.entries()) {
    // The penalty makes the matrix positive definite, so no pivot is zero.
    const pivot = row[at] ?? 1;
    for (let to = at; to < row.length; to++) row[to] = (row[to] ?? 0) / pivot;
    for (const [other, below] of matrix.entries()) {
      const factor = below[at] ?? 0;
      if (other === at || factor === 0) continue;
      for (let to = at; to < row.length; to++) below[to] = (below[to] ?? 0) - factor * (row[to] ?? 0);
    }
  }
  return matrix.map((row) => row.at(-1) ?? 0);
}
