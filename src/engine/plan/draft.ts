import type { LanguageModelV4 } from "@ai-sdk/provider";
import { ModelError } from "../../models/model-error.ts";
import type { Part } from "../../models/stream.ts";
import type { Tier } from "../../terms.ts";
import { traced } from "../../tracing.ts";
import { regex } from "../regex.ts";
import type { Call, FinishPart } from "./composite.ts";

/** A model that drafts an answer. */
export interface PanelMember {
  /** Its role in the trace. */
  role: Tier;
  model: LanguageModelV4;
  /** Weight of its vote, above 0. Default 1. */
  weight?: number;
  /** Share of closed questions that it answers correctly, 0 to 1; undefined where unknown. */
  accuracy?: number | undefined;
  /** Temperature of its draft. Default: the call's. */
  temperature?: number | undefined;
}

/** The result of one member of a panel. */
export interface Draft {
  member: PanelMember;
  text: string;
  /**
   * Canonical form by which drafts are compared, such as the letter of an option or the valid JSON object. Undefined:
   * the draft cannot be the answer, because it contains none, was cut off or is a refusal.
   */
  canonical: string | undefined;
  finish: FinishPart;
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
 * @param canonicalise gives `Draft.canonical` for the text
 * @throws what the model throws; ModelError for a result without text or blocked by the vendor's content filter.
 */
export async function requestDraft(
  member: PanelMember,
  call: Call,
  canonicalise: (text: string) => string | undefined,
): Promise<Draft> {
  const { content, finishReason, usage, providerMetadata } = await traced(
    "draft",
    () => member.model.doGenerate(call),
    {
      attributes: { "chorus.role": member.role },
      signal: call.abortSignal,
    },
  );
  let text = "";
  for (const part of content) if (part.type === "text") text += part.text;
  if (text.trim() === "" || finishReason.unified === "content-filter")
    throw new ModelError("The draft has no text.", { retryable: false });
  const isUsable = finishReason.unified === "stop" && !REFUSAL.test(text.slice(0, 200));
  return {
    member,
    text,
    canonical: isUsable ? canonicalise(text) : undefined,
    finish: { type: "finish", finishReason, usage, ...(providerMetadata ? { providerMetadata } : {}) },
  };
}

/** Characters in one piece of a draft that is streamed as the answer. */
const PIECE = 256;

/** Streams `text`, which is a draft or merged from several, with the finish part of `draft`. */
export function* draftParts({ finish }: Draft, text: string): Generator<Part> {
  yield { type: "text-start", id: "0" };
  for (let at = 0; at < text.length; at += PIECE) {
    yield { type: "text-delta", id: "0", delta: text.slice(at, at + PIECE) };
  }
  yield { type: "text-end", id: "0" };
  yield finish;
}

/** Accuracy assumed for a model whose accuracy is unknown. */
const ASSUMED = { strong: 0.7, fast: 0.5 };

/** The strength by which models are ranked: the known accuracy, or one assumed for the tier. */
export function strengthOf(tier: Tier, accuracy: number | undefined): number {
  return accuracy ?? ASSUMED[tier];
}
