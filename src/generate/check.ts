import type { GenerateRequest } from "../../gen/chorus/v1/generation_pb.js";
import type { Subjects } from "../contract/subjects.ts";
import { type Idempotency, readIdempotencyKey } from "./idempotency.ts";
import { type ReadRequest, readRequest } from "./read-request.ts";
import type { RequestContext } from "./request-context.ts";
import { readSubjects } from "./subjects.ts";

/** What a request says, and under which key it may be repeated. */
interface Checked {
  readonly read: ReadRequest;
  readonly subjects: Subjects;
  readonly idempotency: Idempotency | undefined;
}

/**
 * Checks a request and counts its text.
 * @param request one that a thread has read is already checked
 * @param count counts the tokens of a text
 * @throws Failure; see `readRequest`, `readSubjects` and `readIdempotencyKey`
 */
export function check(
  request: GenerateRequest | ReadRequest,
  context: RequestContext,
  streamed: boolean,
  count: (text: string) => number,
): Checked {
  const isRepeatable = !streamed && context.idempotencyKey !== undefined;
  const { isForeign = false } = context;
  const read = "checked" in request ? request : readRequest(request, { streamed, isRepeatable, isForeign }, count);
  const subjects = readSubjects(read.checked, context.subjects, context.caller, isForeign);
  return { read, subjects, idempotency: isRepeatable ? readIdempotencyKey(read.digest, context) : undefined };
}
