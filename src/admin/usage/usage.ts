import type { MessageInitShape } from "@bufbuild/protobuf";
import type { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import type { MetricsTotalsSchema } from "../../../gen/chorus/v1/generation_pb.js";
import type { Admin } from "../shared/admin.ts";

export type UsageAdmin = Admin<typeof UsageService>;

/** SQL for the sums of rows of `usage`. Tokens are those of answered requests. */
export const SUMS = `sum(requests)::bigint as requests, sum(failed_requests)::bigint as "failedRequests",
  sum(input_tokens)::bigint as "inputTokens", sum(output_tokens)::bigint as "outputTokens",
  sum(cached_tokens)::bigint as "cachedTokens", sum(credits_micro)::bigint as micro`;

/** A row of `SUMS`. */
export interface Sums {
  requests: bigint;
  failedRequests: bigint;
  inputTokens: bigint;
  outputTokens: bigint;
  cachedTokens: bigint;
  micro: bigint;
}

export const ZERO: Sums = {
  requests: 0n,
  failedRequests: 0n,
  inputTokens: 0n,
  outputTokens: 0n,
  cachedTokens: 0n,
  micro: 0n,
};

export function plus(a: Sums, b: Sums): Sums {
  return {
    requests: a.requests + b.requests,
    failedRequests: a.failedRequests + b.failedRequests,
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cachedTokens: a.cachedTokens + b.cachedTokens,
    micro: a.micro + b.micro,
  };
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
