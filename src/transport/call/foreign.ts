import type { Message } from "@bufbuild/protobuf";
import type { GenerateRequest, GenerateResponse, Notice } from "../../../gen/chorus/v1/generation_pb.js";
import { notice } from "../../generate/notices.ts";
import type { ReadRequest } from "../../generate/read-request.ts";
import type { RequestContext } from "../../generate/request-context.ts";
import { replay } from "../../generate/response.ts";
import type { Call, Format, Outcome } from "./call.ts";
import { renameNotice } from "./field-names.ts";
import type { Decoded, ForeignTerms } from "./format.ts";
import { OTHER_MODEL } from "./model-names.ts";
import type { Services } from "./services.ts";

/** A request of another API, and how it is answered. */
export interface Foreign {
  readonly request: GenerateRequest | ReadRequest;
  readonly terms: ForeignTerms;
  readonly context: RequestContext;
  /** The identifier of the generation; known with the first event of a stream. */
  id(): string;
  /** The tokens of the input; known with the first event of a stream. */
  inputTokens(): number;
}

/**
 * Answers a request of another API: whole, as a stream, or as a stream of a whole answer, because JSON is only checked
 * when it is complete.
 * @param formatOf returns how the answer is written, and the failures that name members of the request
 */
export function answerForeign(
  generation: Services["generation"],
  decoded: Decoded<Message | ReadRequest>,
  call: Call,
  formatOf: (foreign: Foreign) => Format,
): Outcome {
  const request = decoded.request as GenerateRequest | ReadRequest;
  const terms = decoded.terms as ForeignTerms;
  const context = call.context();
  context.isForeign = true;
  if (terms.isOtherModel) context.notices.push(OTHER_MODEL);
  context.notices.push(...terms.notices);
  let whole: GenerateResponse | undefined;
  const { facts } = call;
  const id = () => whole?.id ?? facts.generationId ?? "";
  const inputTokens = () => whole?.usage?.inputTokens ?? facts.admittedTokens ?? 0;
  call.format = formatOf({ request, terms, context, id, inputTokens });
  const named = namer(context.notices.length, terms);
  if (!terms.isStream) return generation.generateWhole(request, context).then(named);
  if (terms.streamed)
    return (take) =>
      generation.generate(request, context, (event) =>
        take(event.type === "done" ? { ...event, done: named(event.done) } : event),
      );
  return async (take) => {
    whole = named(await generation.generateWhole(request, context));
    await replay({ ...whole, answer: contentOf(whole) }, context, take);
  };
}

/**
 * Makes the notices of an answer name members of the request.
 * @param first number of the notices that already do: those about the format come before the service's
 */
function namer(first: number, { names }: ForeignTerms) {
  return <T extends { notices: Notice[] }>(answer: T): T => ({
    ...answer,
    notices: answer.notices.map((each, i) => (i < first ? each : renameNotice(each, names))),
  });
}

/** The text of an answer: in the JSON modes only the object, if there is one. */
export function contentOf({ answer, structured = "null" }: GenerateResponse): string {
  return structured === "null" ? answer : structured;
}

/**
 * The notices of an answer as a JSON list. If the answer should be JSON and is not, a notice says why, because other
 * formats have no other place for the reason.
 */
export function noticesJson(answer: { readonly notices: Notice[]; readonly structuredError?: string | undefined }) {
  const { notices, structuredError } = answer;
  const all = structuredError === undefined ? notices : [...notices, notice("structured_error", structuredError)];
  return JSON.stringify(all.map(({ code, message, field }) => ({ code, message, field })));
}
