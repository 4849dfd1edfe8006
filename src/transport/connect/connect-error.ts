import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import type { Signal } from "../../concurrency/abort.ts";
import { Failure, toFailure } from "../../contract/failure.ts";
import { CallerGone } from "../../service/request-context.ts";
import { failureDetail, retryAfterSeconds } from "../rest/failure.ts";
import { isLate } from "./call.ts";

type Details = NonNullable<ConstructorParameters<typeof ConnectError>[3]>;

/** `ErrorInfo.domain` of all failures: the service that reports them. */
const DOMAIN = "chorus";

/**
 * Turns anything thrown into the error that the caller reads.
 * @param signal signal of the call: it tells a caller that left from one whose deadline has passed
 */
export function toConnectError(error: unknown, requestId: string, signal?: Signal): ConnectError {
  const hasLeft = error instanceof CallerGone;
  if (hasLeft && !(signal && isLate(signal))) return new ConnectError("The caller has gone.", Code.Canceled);
  const failure = hasLeft ? new Failure("timed_out") : toFailure(error);
  const retryAfter = retryAfterSeconds(failure);
  const metadata = retryAfter === undefined ? {} : { "retry-after": `${retryAfter}` };
  return new ConnectError(failure.message, failure.row.connect, metadata, detailsOf(failure, requestId));
}

/** The details of a failure: Chorus's, then the standard ones that generic clients and interceptors read. */
function detailsOf(failure: Failure, requestId: string): Details {
  const { kind, row, field, limit, retryAfterMs, message } = failure;
  const reason = (row.code ?? kind).toUpperCase();
  const metadata = { request_id: requestId, ...(limit === undefined ? {} : { limit }) };
  const info: MessageInitShape<typeof ErrorInfoSchema> = { reason, domain: DOMAIN, metadata };
  const details: Details = [
    { desc: FailureDetailSchema, value: failureDetail(failure, requestId) },
    { desc: ErrorInfoSchema, value: info },
  ];
  if (retryAfterMs !== undefined) {
    details.push({ desc: RetryInfoSchema, value: { retryDelay: durationFromMs(Math.ceil(retryAfterMs)) } });
  }
  if (field !== undefined) {
    details.push({ desc: BadRequestSchema, value: { fieldViolations: [{ field, description: message, reason }] } });
  }
  return details;
}
