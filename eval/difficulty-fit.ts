import { FEATURES } from "../src/engine/difficulty/features.ts";
import { BUCKETS } from "../src/engine/difficulty/ngrams.ts";
import type { Features, Scorer } from "../src/engine/difficulty/scorer.ts";

/** Features of a prompt, and the gain in score of the strong model over the weak one. */
export interface Sample {
  features: Features;
  gain: number;
  /** File of the recording. Gains are standardised within a set, because the models differ between sets. */
  set: string;
}

/** Ridge penalties. They pull the weights of the plain features to their priors, the others to zero. */
const PENALTY = { ngrams: 12, plain: 100, joint: 1000 };

/**
 * Most negative gain, as a share of the largest gain. Losses are rare and say little about a prompt; many come from
 * answers of the strong model that could not be parsed.
 */
const LARGEST_LOSS = 0.8;

/**
 * Largest weight of a set, in rows, if there are several. Keeps the largest set from dominating the others.
 */
const SET_ROWS = 1800;

/** Largest share of the buckets that count as familiar. With more, hash collisions make every text look familiar. */
const FAMILIAR = 0.25;

/** Steps of the conjugate gradient method. More steps change the figures by less than 0.001. */
const STEPS = 15;

/**
 * Fits a scorer with two ridge regressions of the gain: one on the plain features alone, one on n-grams and plain
 * features together. Deterministic. The result still has to be calibrated with `calibrate`.
 */
export function fitScorer(samples: readonly Sample[]): Scorer {
  const target = targets(samples);
  const scales = FEATURES.map((_, index) => scale(samples.map(({ features }) => features.values[index] ?? 0)));
  const dense = samples.map(({ features }) => standardise(features.values, scales));
  const sparse = samples.map(({ features }) => features.ngrams);
  const prior = Float64Array.from(FEATURES, ({ prior }) => prior);
  const weights = balance(samples);
  const alone = ridge({ dense, weights, sparse: [], buckets: 0 }, target, prior, PENALTY.plain);
  const joint = ridge({ dense, weights, sparse, buckets: BUCKETS }, target, prior, PENALTY.joint);
  const unit = joint.buckets.reduce((largest, weight) => Math.max(largest, Math.abs(weight)), 1e-9) / 127;
  const weighted = (weights: Float64Array) => scales.map((one, index) => ({ ...one, weight: weights[index] ?? 0 }));
  return {
    alone: weighted(alone.weights),
    joint: weighted(joint.weights),
    buckets: Int8Array.from(joint.buckets, (weight) => Math.round(weight / unit)),
    unit,
    ...familiarity(sparse),
    slope: 1,
    offset: 0,
  };
}

/** Determines the familiar buckets: the most frequent ones, at most the share `FAMILIAR` of all. */
function familiarity(sparse: readonly Int32Array[]): Pick<Scorer, "familiar" | "base" | "usual"> {
  const seen = new Uint32Array(BUCKETS);
  for (const buckets of sparse) for (const at of buckets) seen[at] = (seen[at] ?? 0) + 1;
  const often = Math.max(2, (seen.toSorted()[Math.floor(BUCKETS * (1 - FAMILIAR))] ?? 0) + 1);
  const familiar = new Uint8Array(BUCKETS / 8);
  for (const [at, prompts] of seen.entries())
    if (prompts >= often) familiar[at >> 3] = (familiar[at >> 3] ?? 0) | (1 << (at & 7));
  const base = seen.filter((prompts) => prompts >= often).length / BUCKETS;
  // Excludes the prompt itself from the count, which gives the share for an unseen prompt.
  const shares = sparse.map(
    (buckets) => buckets.filter((at) => (seen[at] ?? 0) > often).length / (buckets.length || 1),
  );
  return { familiar, base, usual: shares.reduce((sum, share) => sum + share, 0) / (shares.length || 1) };
}

/**
 * Sets slope and offset so that the difficulty is the probability of a gain, by Platt scaling.
 * @param outcomes scores of prompts that the scorer was not trained on
 */
export function calibrate(scorer: Scorer, outcomes: ReadonlyArray<{ score: number; gained: boolean }>): Scorer {
  let [slope, offset] = [1, 0];
  for (let step = 0; step < 50; step++) {
    let [g0, g1, h00, h01, h11] = [0, 1e-3 * (slope - 1), 1e-9, 0, 1e-3];
    for (const { score, gained } of outcomes) {
      const likely = 1 / (1 + Math.exp(-(slope * score + offset)));
      const [miss, spread] = [likely - Number(gained), likely * (1 - likely)];
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
  return { ...scorer, slope: Number.isFinite(slope) ? slope : 1, offset: Number.isFinite(offset) ? offset : 0 };
}

/** Weight of each sample in the sum of squares. */
function balance(samples: readonly Sample[]): Float64Array {
  const rows = new Map<string, number>();
  for (const { set } of samples) rows.set(set, (rows.get(set) ?? 0) + 1);
  return Float64Array.from(samples, ({ set }) => (rows.size < 2 ? 1 : Math.min(1, SET_ROWS / (rows.get(set) ?? 1))));
}

/** Standardises the gains within each set. */
function targets(samples: readonly Sample[]): Float64Array {
  const largest = new Map<string, number>();
  for (const { set, gain } of samples) largest.set(set, Math.max(largest.get(set) ?? 0, Math.abs(gain)));
  const clipped = samples.map(({ set, gain }) => Math.max(gain, -LARGEST_LOSS * (largest.get(set) ?? 0)));
  const sets = new Map(
    [...largest.keys()].map((name) => [name, scale(clipped.filter((_, at) => samples[at]?.set === name))]),
  );
  return Float64Array.from(samples, ({ set }, at) => {
    const { mean, deviation } = sets.get(set) ?? { mean: 0, deviation: 1 };
    return ((clipped[at] ?? 0) - mean) / deviation;
  });
}

function scale(values: readonly number[]): { mean: number; deviation: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / (values.length || 1);
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length || 1);
  return { mean, deviation: variance > 1e-12 ? Math.sqrt(variance) : 1 };
}

function standardise(values: Float64Array, scales: ReadonlyArray<{ mean: number; deviation: number }>): Float64Array {
  return Float64Array.from(scales, ({ mean, deviation }, at) => ((values[at] ?? 0) - mean) / deviation);
}

interface Design {
  weights: Float64Array;
  dense: readonly Float64Array[];
  /** Buckets of each row. Each has the value 1 / √(number of buckets of the row). */
  sparse: readonly Int32Array[];
  buckets: number;
}

/**
 * Minimises, by conjugate gradients, the weighted |y − Xw|² + penalty · |w − prior|² + PENALTY.ngrams · |b|², where w
 * are the weights of the dense features and b those of the buckets.
 */
function ridge(design: Design, y: Float64Array, prior: Float64Array, penalty: number) {
  const width = prior.length;
  const weights = new Float64Array(width + design.buckets);
  weights.set(prior);
  const penalties = new Float64Array(weights.length).fill(PENALTY.ngrams).fill(penalty, 0, width);
  const residual = new Float64Array(weights.length);
  const image = times(design, weights, width);
  transposed(
    design,
    y.map((value, at) => value - (image[at] ?? 0)),
    width,
    residual,
  );
  const direction = residual.slice();
  const product = new Float64Array(weights.length);
  let square = dot(residual, residual);
  const enough = square * 1e-10;
  for (let step = 0; step < STEPS && square > enough; step++) {
    transposed(design, times(design, direction, width), width, product);
    for (let at = 0; at < product.length; at++)
      product[at] = (product[at] ?? 0) + (penalties[at] ?? 0) * (direction[at] ?? 0);
    const length = square / dot(direction, product);
    add(weights, direction, length);
    add(residual, product, -length);
    const next = dot(residual, residual);
    for (let at = 0; at < direction.length; at++)
      direction[at] = (residual[at] ?? 0) + (next / square) * (direction[at] ?? 0);
    square = next;
  }
  return { weights: weights.slice(0, width), buckets: weights.slice(width) };
}

function times({ dense, sparse }: Design, weights: Float64Array, width: number): Float64Array {
  return Float64Array.from(dense, (row, at) => {
    let sum = 0;
    for (let column = 0; column < width; column++) sum += (row[column] ?? 0) * (weights[column] ?? 0);
    const buckets = sparse[at] ?? new Int32Array();
    let hashed = 0;
    for (const bucket of buckets) hashed += weights[width + bucket] ?? 0;
    return sum + hashed / Math.sqrt(buckets.length || 1);
  });
}

function transposed({ dense, sparse, weights }: Design, values: Float64Array, width: number, into: Float64Array): void {
  into.fill(0);
  for (const [at, row] of dense.entries()) {
    const value = (values[at] ?? 0) * (weights[at] ?? 1);
    for (let column = 0; column < width; column++) into[column] = (into[column] ?? 0) + (row[column] ?? 0) * value;
    const buckets = sparse[at] ?? new Int32Array();
    const share = value / Math.sqrt(buckets.length || 1);
    for (const bucket of buckets) into[width + bucket] = (into[width + bucket] ?? 0) + share;
  }
}

function dot(a: Float64Array, b: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += (a[at] ?? 0) * (b[at] ?? 0);
  return sum;
}

function add(into: Float64Array, values: Float64Array, factor: number): void {
  for (let at = 0; at < into.length; at++) into[at] = (into[at] ?? 0) + factor * (values[at] ?? 0);
}
