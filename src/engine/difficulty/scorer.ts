import { FEATURES, plain } from "./features.ts";
import { BUCKETS, ngrams } from "./ngrams.ts";
import { sample } from "./sample.ts";

/** What a head reads of one prompt. */
export interface Features {
  plain: Float64Array;
  ngrams: Int32Array;
}

/** A plain feature's weight, and the mean and deviation that it is standardised by. */
export interface FeatureWeight {
  mean: number;
  deviation: number;
  weight: number;
}

/** The trained part of the judge. Scores are in standard deviations of what the strong model gained over the weak one. */
export interface Scorer {
  /** The plain head, which stands alone where the n-grams are unfamiliar. */
  plain: FeatureWeight[];
  /** Weights of the plain features beside the n-grams. */
  joint: FeatureWeight[];
  /** Weight of each bucket in units of `unit`. */
  buckets: Int8Array;
  unit: number;
  /** One bit a bucket: whether training has often seen it. */
  familiar: Uint8Array;
  /** Share of familiar buckets, 0 to 1: `base` in any text, by collisions; `usual` in a prompt of the kind that training saw. */
  base: number;
  usual: number;
  /** Difficulty is the logistic function of `slope` × score + `offset`. */
  slope: number;
  offset: number;
}

export interface Score {
  score: number;
  /** How far the n-grams were trusted, 0 to 1. */
  trust: number;
}

/** Reads a prompt's features, of a long one in bounded time, see `sample`. */
export function features(text: string): Features {
  const read = sample(text);
  return { plain: plain(read, text.length), ngrams: ngrams(read) };
}

/** The plain head's score alone. */
export function featureScore(head: Scorer, features: Features): number {
  return linear(head.plain, features.plain);
}

/** The score of both heads, moving smoothly from the plain one to the other as more of the prompt's n-grams are familiar. */
export function score(head: Scorer, features: Features): Score {
  const { buckets, familiar, unit, base, usual } = head;
  let [sum, known] = [0, 0];
  for (const at of features.ngrams) {
    sum += buckets[at] ?? 0;
    known += ((familiar[at >> 3] ?? 0) >> (at & 7)) & 1;
  }
  const number = features.ngrams.length || 1;
  const trust = usual > base ? Math.min(1, Math.max(0, (known / number - base) / (usual - base))) : 0;
  const joint = linear(head.joint, features.plain) + (sum * unit) / Math.sqrt(number);
  return { score: trust * joint + (1 - trust) * featureScore(head, features), trust };
}

/** How likely the strong tier is to do better, 0 to 1, for a score of this head. */
export function difficulty({ slope, offset }: Scorer, score: number): number {
  return 1 / (1 + Math.exp(-(slope * score + offset)));
}

function linear(weights: readonly FeatureWeight[], values: Float64Array): number {
  return weights.reduce((sum, one, at) => sum + one.weight * (((values[at] ?? 0) - one.mean) / one.deviation), 0);
}

const MAGIC = 0x31474a43;
const SCALARS = 5;
const HEADER = 4 * (2 + SCALARS + 6 * FEATURES.length);
const SIZE = HEADER + BUCKETS + BUCKETS / 8;

/** The head as bytes: a mark, the number of plain features, the scalars and plain weights as little-endian floats, then the buckets and bits. */
export function encodeScorer(head: Scorer): Uint8Array {
  const bytes = new Uint8Array(SIZE);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC, true);
  view.setUint32(4, FEATURES.length, true);
  const weights = [...head.plain, ...head.joint].flatMap(({ mean, deviation, weight }) => [mean, deviation, weight]);
  const floats = [head.unit, head.base, head.usual, head.slope, head.offset, ...weights];
  for (const [at, value] of floats.entries()) view.setFloat32(8 + 4 * at, value, true);
  bytes.set(new Uint8Array(head.buckets.buffer, head.buckets.byteOffset, BUCKETS), HEADER);
  bytes.set(head.familiar, HEADER + BUCKETS);
  return bytes;
}

/** @throws Error when the bytes are not a head of this version's features */
export function decodeScorer(bytes: Uint8Array): Scorer {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length !== SIZE || view.getUint32(0, true) !== MAGIC || view.getUint32(4, true) !== FEATURES.length)
    throw new Error(
      `The judge's head does not fit this version: expected ${SIZE} bytes. Train it again with npm run train:difficulty.`,
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
    plain: weights(0),
    joint: weights(FEATURES.length),
    buckets: Int8Array.from(bytes.subarray(HEADER, HEADER + BUCKETS)),
    familiar: Uint8Array.from(bytes.subarray(HEADER + BUCKETS)),
  };
}
