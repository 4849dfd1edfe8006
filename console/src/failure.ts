import { Code, ConnectError } from "@connectrpc/connect";
import { type FailureDetail, FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import { duration } from "./format.ts";
import { SignInError } from "./session/session-client.ts";

/** A failure as it is displayed. */
export interface Described {
  /** What happened, in a few words. */
  readonly title: string;
  /** What to do, or the message of the service. */
  readonly text: string;
  /** Stable code, such as `spend_limit_reached`; may be empty. */
  readonly code: string;
  /** Path of the invalid field; may be empty. */
  readonly field: string;
  /** Identifier to find the request in the log of the service; may be empty. */
  readonly requestId: string;
}

const TITLES: Record<string, string> = {
  insufficient_credit: "There is too little credit",
  spend_limit_reached: "A spend limit is reached",
  invalid_request: "The service does not accept this",
  invalid_response_schema: "The schema is not acceptable",
  structured_output_failed: "No answer satisfied the schema",
  content_refused: "Every model refused the request",
  request_too_long: "The request is too long for every model",
  upstream_failed: "No model could answer",
  overloaded: "The service is busy",
  timed_out: "There was no answer in time",
  request_too_large: "The request is too large",
  foreign_origin: "The service does not trust this address",
  not_found: "This no longer exists",
  internal: "Something went wrong in the service",
};

/** Describes any error that a call can throw. */
export function describe(error: unknown): Described {
  if (error instanceof SignInError) return describeSignIn(error);
  // Such as a full disk while a file is saved. A call that fails throws no such error.
  if (error instanceof DOMException) return withoutCode("The browser could not do this", error.message);
  if (!(error instanceof ConnectError))
    return withoutCode("The service cannot be reached", "Check the connection, then try again.");
  const detail = detailOf(error);
  const code = detail?.code ?? "";
  const wait =
    detail?.retryAfterMs === undefined
      ? ""
      : ` It makes sense to try again in ${duration(Number(detail.retryAfterMs))}.`;
  // An error without a detail is not from the service: the connection failed.
  if (!detail && error.code !== Code.Unauthenticated) {
    return withoutCode(
      "The service cannot be reached",
      "Check the connection, then try again. The service may be restarting.",
    );
  }
  const limited = error.code === Code.ResourceExhausted ? "A rate limit is reached" : "That did not work";
  const title = TITLES[code] ?? limited;
  // Some messages of the service start with the sentence of the title.
  const text = error.rawMessage.startsWith(`${title}.`) ? error.rawMessage.slice(title.length + 2) : error.rawMessage;
  return {
    title,
    text: text + wait,
    code,
    field: detail?.field ?? "",
    requestId: detail?.requestId ?? "",
  };
}

function detailOf(error: ConnectError): FailureDetail | undefined {
  return error.findDetails(FailureDetailSchema)[0];
}

function describeSignIn({ status, message, retryAfterS }: SignInError): Described {
  if (status === 429) {
    const wait = retryAfterS === undefined ? "a while" : duration(retryAfterS * 1000);
    return withoutCode("Too many attempts", `Signing in from here is slowed down. Try again in ${wait}.`);
  }
  return withoutCode("That did not work", message);
}

function withoutCode(title: string, text: string): Described {
  return { title, text, code: "", field: "", requestId: "" };
}
