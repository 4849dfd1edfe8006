import { create } from "@bufbuild/protobuf";
import { type FailureDetail, FailureDetailSchema } from "../../../gen/chorus/v1/failure_pb.js";
import { Failure } from "../../contract/failure.ts";

/** What a refusal of a compressed request names as supported. */
export const SUPPORTED_ENCODINGS = "identity";

/** A failure as a response over HTTP. */
export interface FailureResponse {
  readonly status: number;
  /** The body, as JSON text. */
  readonly text: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** The response of a failure over REST. */
export function ownFailure(failure: Failure, requestId: string): FailureResponse {
  return { status: failure.row.http, text: failureJson(failure, requestId), headers: failureHeaders(failure) };
}

/** `Retry-After`, when the failure states a time; the supported encodings, when the request has another. */
export function failureHeaders(failure: Failure): FailureResponse["headers"] {
  const seconds = retryAfterSeconds(failure);
  return {
    ...(seconds === undefined ? {} : { "Retry-After": String(seconds) }),
    ...(failure.kind === "unsupported_compression" ? { "Accept-Encoding": SUPPORTED_ENCODINGS } : {}),
  };
}

/** The body of a failure over REST, as JSON text. */
export function failureJson(failure: Failure, requestId: string): string {
  // JSON.stringify leaves out members that are undefined.
  return JSON.stringify({
    code: failure.row.code,
    message: failure.message,
    request_id: requestId,
    field: failure.field,
    limit: failure.limit,
    retry_after_ms: wholeMs(failure),
  });
}

/** The detail of a failure over Connect, gRPC and gRPC-Web. The message travels beside it. */
export function failureDetail(failure: Failure, requestId: string): FailureDetail {
  const { row, field = "", limit = "" } = failure;
  const detail = create(FailureDetailSchema, { code: row.code ?? "", field, limit, requestId });
  const retryAfterMs = wholeMs(failure);
  if (retryAfterMs !== undefined) detail.retryAfterMs = BigInt(retryAfterMs);
  return detail;
}

/** The value of `Retry-After`: whole seconds, at least 1. Undefined when the failure states no time. */
export function retryAfterSeconds({ retryAfterMs }: Failure): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.max(1, Math.ceil(retryAfterMs / 1_000));
}

function wholeMs({ retryAfterMs }: Failure): number | undefined {
  return retryAfterMs === undefined ? undefined : Math.ceil(retryAfterMs);
}

/** The failure of a path that serves only the methods of `allow`, the value of the header, such as `GET, HEAD`. */
export function methodNotAllowed(allow: string): Failure {
  const message = `This path does not support the method. Use ${allow.replaceAll(", ", " or ")}.`;
  return new Failure("method_not_allowed", { message });
}
