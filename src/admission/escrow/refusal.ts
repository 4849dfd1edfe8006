import { Failure, type FailureKind } from "../../contract/failure.ts";

/** Why a request is refused. */
export interface Refusal {
  refusal: FailureKind;
  /** Name of the limit that was reached. */
  limit?: string;
  /** Wait after which the limit allows the request, in milliseconds. Absent where no wait helps. */
  retry_ms?: number;
  /** True when no wait helps. */
  never?: boolean;
}

/** Turns a refusal into the failure that the caller gets. */
export function refusalFailure({ refusal: kind, limit, retry_ms, never = false }: Refusal): Failure {
  return new Failure(kind, { message: messageOf(kind, limit, never), limit, retryAfterMs: retry_ms });
}

/** @returns undefined where the default message of the failure says enough */
function messageOf(kind: FailureKind, limit: string | undefined, never: boolean): string | undefined {
  if (limit === "held_credit") {
    return "Running requests hold the rest of the credit. Send the request again after some of them have ended.";
  }
  // Limits of a workspace have no colon; caps are named by the kind of their subject: user:credits_per_day.
  const name = limit?.includes(":") ? `cap ${limit}` : `workspace's limit ${limit}`;
  if (limit !== undefined && kind === "insufficient_credit")
    return (
      `What the ${name} leaves is lower than the highest possible cost of this request. ` +
      "Lower max_tokens, or have it raised."
    );
  if (limit !== undefined && never) {
    // A cap on credits is compared with the highest possible cost, most of which is that of max_tokens.
    const advice = limit.includes(":credits_") ? "Lower max_tokens" : "Send a smaller one";
    return `The ${name} does not allow this request, even after a wait. ${advice}, or have it raised.`;
  }
  if (limit !== undefined) return `The ${name} is reached. Wait, then send the request again.`;
  if (kind === "insufficient_credit") {
    return (
      "The credit balance is lower than the highest possible cost of this request. " +
      "Add credit or lower max_tokens, then send it again."
    );
  }
  if (kind === "spend_limit_reached" && never) {
    return (
      "This request can cost more than the account owner's spend limit for a whole period. " +
      "Lower max_tokens, or have the limit raised."
    );
  }
  return undefined;
}
