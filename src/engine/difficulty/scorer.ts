import { FEATURES, featureValues } from "./features.ts";
import { BUCKETS, ngrams } from "./ngrams.ts";

/** What a scorer reads of one prompt. */
export interface Features {
  /** Values of `FEATURES`, in their order. */
  values: Float64Array;
  /** Distinct buckets of its n-grams. */
  ngrams: Int32Array;
}

/** The weight of a feature, and the mean and standard deviation that standardise its value. */
interface FeatureWeight {
  mean: number;
  deviation: number;
  weight: number;
}

/**
 * The trained part of the difficulty rater: two linear models. A score is in standard deviations of the gain of the
 * strong model over the weak one.
 */
export interface Scorer {
  /** Weights of the features in the model that uses no n-grams. */
  alone: FeatureWeight[];
  /** Weights of the features in the model that uses n-grams too. */
  joint: FeatureWeight[];
  /** Weight of each bucket of n-grams, in multiples of `unit`. */
  buckets: Int8Array;
  unit: number;
  /** One bit for each bucket: whether it was frequent in training. */
  familiar: Uint8Array;
  /**
   * Expected share of familiar buckets, 0 to 1: `base` in any text, by hash collisions; `usual` in a prompt like
   * those of training.
   */
  base: number;
  usual: number;
  /** The difficulty is the logistic function of `slope` × score + `offset`. */
  slope: number;
  offset: number;
}

export interface Score {
  score: number;
  /** Share of the model with n-grams in the score, 0 to 1. */
  trust: number;
}

/**
 * Reads the features of a prompt.
 * @param text the prompt, or the sample of a long one
 * @param length characters of the whole prompt
 */
export function features(text: string, length = text.length): Features {
  return { values: featureValues(text, length), ngrams: ngrams(text) };
}

/** The score by the model that uses no n-grams. */
export function featureScore(scorer: Scorer, { values }: Features): number {
  return linear(scorer.alone, values);
}

/**
 * The mean of both models' scores. The model with n-grams counts the more, the more of the prompt's n-grams are
 * familiar.
 */
export function score(scorer: Scorer, features: Features): Score {
  const { buckets, familiar, unit, base, usual } = scorer;
  let [sum, known] = [0, 0];
  for (const at of features.ngrams) {
    sum += buckets[at] ?? 0;
    known += ((familiar[at >> 3] ?? 0) >> (at & 7)) & 1;
  }
  const number = features.ngrams.length || 1;
  const trust = usual > base ? Math.min(1, Math.max(0, (known / number - base) / (usual - base))) : 0;
  const joint = linear(scorer.joint, features.values) + (sum * unit) / Math.sqrt(number);
  return { score: trust * joint + (1 - trust) * featureScore(scorer, features), trust };
}

/** Probability that the strong tier does better, 0 to 1, for a score of this scorer. */
export function difficulty({ slope, offset }: Scorer, score: number): number {
  return 1 / (1 + Math.exp(-(slope * score + offset)));
}

function linear(weights: readonly FeatureWeight[], values: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < weights.length; at++) {
    const one = weights[at];
    if (one) sum += one.weight * (((values[at] ?? 0) - one.mean) / one.deviation);
  }
  return sum;
}

const MAGIC = 0x31474a43;
const SCALARS = 5;
const HEADER = 4 * (2 + SCALARS + 6 * FEATURES.length);
const SIZE = HEADER + BUCKETS + BUCKETS / 8;

/**
 * Layout: a magic number, the number of features, the scalars and feature weights as little-endian floats, the bucket
 * weights, the familiar bits.
 */
export function encodeScorer(scorer: Scorer): Uint8Array {
  const bytes = new Uint8Array(SIZE);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, FEATURES.length, true);
  const weights = [...scorer.alone, ...scorer.joint].flatMap(({ mean, deviation, weight }) => [
    mean,
    deviation,
    weight,
  ]);
  const floats = [scorer.unit, scorer.base, scorer.usual, scorer.slope, scorer.offset, ...weights];
  for (const [at, value] of floats.entries()) view.setFloat32(8 + 4 * at, value, true);
  bytes.set(new Uint8Array(scorer.buckets.buffer, scorer.buckets.byteOffset, BUCKETS), HEADER);
  bytes.set(scorer.familiar, HEADER + BUCKETS);
  return bytes;
}

/** @throws Error when the bytes do not fit this version's features */
export function decodeScorer(bytes: Uint8Array): Scorer {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length !== SIZE || view.getUint32(0, true) !== MAGIC || view.getUint32(4, true) !== FEATURES.length)
    throw new Error(
      `The difficulty weights do not fit this version: expected ${SIZE} bytes. ` +
        "Train them again with npm run train:difficulty.",
    );
  const float = (at: number) => view.getFloat32(8 + 4 * at, true);
  const weights = (from: number) =>
    FEATURES.map((_, index) => {
      const at = SCALARS + 3 * (from + index);
      return { mean: float(at), deviation: float(at + 1), weight: float(at + 2) };
    });
  return {
    unit: float(0),
    base: float(1),
    usual: float(2),
    slope: float(3),
    offset: float(4),
    alone: weights(0),
    joint: weights(FEATURES.length),
    buckets: Int8Array.from(bytes.subarray(HEADER, HEADER + BUCKETS)),
    familiar: Uint8Array.from(bytes.subarray(HEADER + BUCKETS)),
  };
}
