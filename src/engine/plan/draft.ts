import type { Tier } from "../../contract/terms.ts";
import {
  complete,
  type End,
  type Model,
  type ModelCall,
  type Piece,
  type Reasoning,
  type WrittenCall,
} from "../../models/port/model.ts";
import { ModelError } from "../../models/port/model-error.ts";
import { traced } from "../../telemetry/tracing.ts";
import { regex } from "../text/regex.ts";

/** A model that drafts an answer. */
export interface PanelMember {
  /** Its role in the trace. */
  role: Tier;
  model: Model;
  /** Weight of its vote, above 0. Default 1. */
  weight?: number;
  /** Share of closed questions that it answers correctly, 0 to 1; undefined where unknown. */
  accuracy?: number | undefined;
  /** How deeply it may think if the panel's time allows. Default: the call's. */
  depth?: Reasoning;
  /** Temperature of its draft where the caller sets none. Default: the call's. */
  temperature?: number | undefined;
}

/** The result of one member of a panel. */
export interface Draft {
  member: PanelMember;
  text: string;
  calls: readonly WrittenCall[];
  /**
   * Canonical form by which drafts are compared, such as the letter of an option or the valid JSON object. Undefined:
   * the draft cannot be the answer, because it contains none, was cut off or is a refusal.
   */
  canonical: string | undefined;
  end: End;
  /** See `ModelCall.step`. */
  step?: number | undefined;
}

/** The draft that is an answer. */
export interface DraftAnswer {
  readonly chosen: Draft;
  /** Text of the answer, perhaps of several drafts. */
  readonly text: string;
  /** Calls of the answer. Default: those of the draft. */
  readonly calls?: readonly WrittenCall[];
}

/** Openings of refusals. A false positive costs one more call of a strong model. */
const REFUSAL = regex("i")`
  ^\W*(?:i['’]?m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately)?[,.;:\s]*(?:but\s+)?
  (?:as an ai\b
  |i\s+(?:can(?:['’]t|not)|am (?:unable|not able) to|['’]m (?:unable|not able) to|won['’]t)\s+
  (?:help|assist|provide|answer|comply|fulfil|do that|engage|discuss))
`;

/**
 * Gets a draft from one member.
 * @param call that is not streamed
 * @param canonicalise gives `Draft.canonical` for the text and the calls
 * @throws what the model throws; ModelError for a result without text or that was refused.
 */
export async function requestDraft(
  member: PanelMember,
  call: ModelCall,
  canonicalise: (text: string, calls: readonly WrittenCall[]) => string | undefined,
): Promise<Draft> {
  const { text, calls, end } = await traced("draft", () => complete(member.model, call), {
    attributes: { "chorus.role": member.role },
    signal: call.signal,
  });
  if (end.reason === "content_filter")
    throw new ModelError("The draft was refused.", { retryable: false, kind: "refused" });
  if (text.trim() === "" && calls.length === 0) throw new ModelError("The draft has no text.", { retryable: false });
  const isUsable = end.reason === "stop" && !REFUSAL.test(text.slice(0, 200));
  return { member, text, calls, canonical: isUsable ? canonicalise(text, calls) : undefined, end, step: call.step };
}

/** Characters in one piece of a draft that is streamed as the answer. */
const PIECE = 256;

/** The pieces of an answer, with the end of its draft. */
export function* draftPieces(
  { chosen: { end, calls: own }, text, calls = own }: DraftAnswer,
  { streamed }: Pick<ModelCall, "streamed">,
): Generator<Piece> {
  const length = streamed ? PIECE : text.length;
  for (let at = 0; at < text.length; at += length) yield { type: "text", text: text.slice(at, at + length) };
  if (calls.length > 0) yield { type: "calls", calls };
  yield end;
}
