import { Code, ConnectError } from "@connectrpc/connect";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { Failure, toFailure } from "../../failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { failureDetail, retryAfterSeconds } from "../failure-body.ts";
import { isLate } from "./call.ts";

/**
 * Turns anything thrown into the error that the caller reads.
 * @param signal signal of the call: it tells a caller that left from one whose deadline has passed
 */
export function toConnectError(error: unknown, requestId: string, signal?: AbortSignal): ConnectError {
  const hasLeft = error instanceof CallerGone;
  if (hasLeft && !(signal && isLate(signal))) return new ConnectError("The caller has gone.", Code.Canceled);
  const failure = hasLeft ? new Failure("timed_out") : toFailure(error);
  const retryAfter = retryAfterSeconds(failure);
  const metadata = retryAfter === undefined ? {} : { "retry-after": `${retryAfter}` };
  const detail = { desc: FailureDetailSchema, value: failureDetail(failure, requestId) };
  return new ConnectError(failure.message, failure.row.connect, metadata, [detail]);
}
