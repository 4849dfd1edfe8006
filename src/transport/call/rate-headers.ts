import type { RateLimit } from "../../admission/rate-limits.ts";

/** Returns headers with the rate limits of a workspace: names and values in turn. */
export type RateHeaders = (limits: readonly RateLimit[]) => string[];

/** The fields of draft-ietf-httpapi-ratelimit-headers, which has no unit for tokens yet. */
export const standardRateHeaders: RateHeaders = (limits) => {
  let policy = "";
  let state = "";
  for (const { name, figure, limit, remaining, windowSeconds, resetMs } of limits) {
    const unit = figure === "requests" ? "" : ';qu="tokens"';
    policy += `${policy === "" ? "" : ", "}"${name}";q=${limit}${unit};w=${windowSeconds}`;
    state += `${state === "" ? "" : ", "}"${name}";r=${remaining};t=${Math.ceil(resetMs / 1_000)}`;
  }
  return ["RateLimit-Policy", policy, "RateLimit", state];
};

/** The headers of OpenAI's API. A figure has the shortest of its windows; `tokens` are those of the input. */
export const openaiRateHeaders: RateHeaders = (limits) => [
  ...openaiOf("requests", limits, "requests"),
  ...openaiOf("tokens", limits, "input_tokens"),
];

function openaiOf(name: string, limits: readonly RateLimit[], figure: RateLimit["figure"]): string[] {
  const found = limits.find((each) => each.figure === figure);
  if (!found) return [];
  return [
    ...[`x-ratelimit-limit-${name}`, String(found.limit)],
    ...[`x-ratelimit-remaining-${name}`, String(found.remaining)],
    ...[`x-ratelimit-reset-${name}`, duration(found.resetMs)],
  ];
}

/** A time such as `2h0m5s`. */
function duration(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  const rest = `${seconds % 60}s`;
  if (minutes === 0) return rest;
  return hours === 0 ? `${minutes}m${rest}` : `${hours}h${minutes % 60}m${rest}`;
}

let second = -1;
let textOfSecond = "";

/** Windows end at whole seconds of the database's clock. This process knows that clock by so many milliseconds. */
const TOLERANCE_MS = 100;

/**
 * A time as RFC 3339 without fractions, rounded up, because a caller that retries too early is refused again. The
 * windows of a workspace mostly end together, and a text takes 1 µs.
 */
function secondText(ms: number): string {
  const asked = Math.ceil((ms - TOLERANCE_MS) / 1_000);
  if (asked !== second) textOfSecond = `${new Date(asked * 1_000).toISOString().slice(0, 19)}Z`;
  second = asked;
  return textOfSecond;
}

const ANTHROPIC_NAMES = [
  ["requests", "requests"],
  ["input-tokens", "input_tokens"],
  ["output-tokens", "output_tokens"],
] as const;

/** The headers of Anthropic's API. A figure has the shortest of its windows. */
export const anthropicRateHeaders: RateHeaders = (limits) => {
  const now = Date.now();
  return ANTHROPIC_NAMES.flatMap(([name, figure]) => {
    const found = limits.find((each) => each.figure === figure);
    if (!found) return [];
    const head = `anthropic-ratelimit-${name}`;
    return [
      ...[`${head}-limit`, String(found.limit)],
      ...[`${head}-remaining`, String(found.remaining)],
      ...[`${head}-reset`, secondText(now + found.resetMs)],
    ];
  });
};
