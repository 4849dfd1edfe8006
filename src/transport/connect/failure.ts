import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { type FailureDetail, FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import type { Failure } from "../../contract/failure.ts";
import { retryAfterSeconds, wholeMs } from "../../contract/failure-json.ts";

type Details = NonNullable<ConstructorParameters<typeof ConnectError>[3]>;

/** `ErrorInfo.domain` of all failures: the service that reports them. */
const DOMAIN = "chorus";

/** Turns a failure into the error that the caller reads. */
export function toConnectError(failure: Failure, requestId: string): ConnectError {
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

/** Chorus's own detail of a failure. The message travels beside it. */
function failureDetail(failure: Failure, requestId: string): FailureDetail {
  const { row, field = "", limit = "" } = failure;
  const detail = create(FailureDetailSchema, { code: row.code ?? "", field, limit, requestId });
  const retryAfterMs = wholeMs(failure);
  if (retryAfterMs !== undefined) detail.retryAfterMs = BigInt(retryAfterMs);
  return detail;
}
