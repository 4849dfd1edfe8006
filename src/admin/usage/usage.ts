import type { MessageInitShape } from "@bufbuild/protobuf";
import type { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import type { MetricsTotalsSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Admin } from "../shared/admin.ts";

export type UsageAdmin = Admin<typeof UsageService>;

/** SQL for the sums of rows of `usage`. Tokens are those of answered requests. */
export const SUMS = `sum(requests)::bigint as requests, sum(failed_requests)::bigint as "failedRequests",
  sum(input_tokens)::bigint as "inputTokens", sum(output_tokens)::bigint as "outputTokens",
  sum(cached_tokens)::bigint as "cachedTokens", sum(credits_micro)::bigint as micro`;

export type Sums = Record<(typeof FIGURES)[number], bigint>;

const FIGURES = ["requests", "failedRequests", "inputTokens", "outputTokens", "cachedTokens", "micro"] as const;

export function sumOf(rows: readonly Sums[]): Sums {
  const sum = (figure: keyof Sums) => rows.reduce((total, row) => total + row[figure], 0n);
  return Object.fromEntries(FIGURES.map((figure) => [figure, sum(figure)])) as Sums;
}

/** The fields that totals and points of a series share. */
export function totalsFields({
  micro,
  ...counts
}: Sums): Omit<MessageInitShape<typeof MetricsTotalsSchema>, "$typeName"> {
  return { ...counts, credits: credits(micro) };
}

/** Converts millionths to credits. */
export function credits(micro: bigint): number {
  return Number(micro) / 1e6;
}
