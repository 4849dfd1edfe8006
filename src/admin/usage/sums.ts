/** Sums over a period. Tokens are those of answered requests. */
export interface Totals {
  /** Requests with an answer, complete or in part. */
  requests: number;
  /** Requests without an answer: failures, and unary requests whose caller left. */
  failedRequests: number;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  /** Credits charged, exact to one millionth. */
  credits: number;
}

/** SQL for the sums of rows of `usage`. */
export const SUMS = `sum(requests)::bigint as requests, sum(failed_requests)::bigint as failed,
  sum(input_tokens)::bigint as input, sum(output_tokens)::bigint as output,
  sum(cached_tokens)::bigint as cached, sum(credits_micro)::bigint as micro`;

/** Sums as the database returns them. */
export interface Sums {
  requests: bigint;
  failed: bigint;
  input: bigint;
  output: bigint;
  cached: bigint;
  micro: bigint;
}

export const ZERO: Sums = { requests: 0n, failed: 0n, input: 0n, output: 0n, cached: 0n, micro: 0n };

export function plus(a: Sums, b: Sums): Sums {
  return {
    requests: a.requests + b.requests,
    failed: a.failed + b.failed,
    input: a.input + b.input,
    output: a.output + b.output,
    cached: a.cached + b.cached,
    micro: a.micro + b.micro,
  };
}

export function totals({ requests, failed, input, output, cached, micro }: Sums): Totals {
  return {
    requests: Number(requests),
    failedRequests: Number(failed),
    inputTokens: Number(input),
    outputTokens: Number(output),
    cachedTokens: Number(cached),
    credits: credits(micro),
  };
}

/** Converts millionths to credits. */
export function credits(micro: bigint): number {
  return Number(micro) / 1e6;
}
