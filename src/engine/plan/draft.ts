import type { LanguageModelV4, LanguageModelV4CallOptions } from "@ai-sdk/provider";
import { ModelError } from "../../models/model-error.ts";
import type { Part } from "../../models/stream.ts";
import type { Tier } from "../../terms.ts";
import { traced } from "../../tracing.ts";
import type { FinishPart } from "./composite.ts";

/** Somebody who drafts an answer. */
export interface PanelMember {
  /** How the trace calls it. */
  role: Tier;
  model: LanguageModelV4;
  /** Weight of its vote, above 0. Default 1. */
  weight?: number;
  /** Share of closed questions that it gets right, 0 to 1, where that is known. */
  accuracy?: number | undefined;
  /** Temperature of its draft, in place of the call's. */
  temperature?: number | undefined;
}

/** What a member of a panel answered. */
export interface Draft {
  member: PanelMember;
  text: string;
  /**
   * What of it is compared, such as the letter of the option or the valid JSON object. Undefined: it cannot be the answer, because it
   * gives none, was cut off, or refuses.
   */
  form: string | undefined;
  finish: FinishPart;
}

/** Openings with which models refuse. A false alarm costs a call of a stronger model, no answer. */
const REFUSAL =
  /^\W*(?:i['’]?m sorry|i am sorry|sorry|i apologi[sz]e|unfortunately)?[,.;:\s]*(?:but\s+)?(?:as an ai\b|i\s+(?:can(?:['’]t|not)|am (?:unable|not able) to|['’]m (?:unable|not able) to|won['’]t)\s+(?:help|assist|provide|answer|comply|fulfil|do that|engage|discuss))/i;

/**
 * Asks one member for a draft.
 * @param form see `Draft.form`
 * @throws what the model throws; ModelError for an answer without text or held back by the vendor's content filter.
 */
export async function askDraft(
  member: PanelMember,
  call: LanguageModelV4CallOptions,
  form: (text: string) => string | undefined,
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
  const isWhole = finishReason.unified === "stop" && !REFUSAL.test(text.slice(0, 200));
  return {
    member,
    text,
    form: isWhole ? form(text) : undefined,
    finish: { type: "finish", finishReason, usage, ...(providerMetadata ? { providerMetadata } : {}) },
  };
}

/** Characters in one piece of a draft that is streamed as the answer. */
const PIECE = 256;

/** A draft, or what was made of several like it, as the stream of an answer. */
export function* draftParts({ finish }: Draft, text: string): Generator<Part> {
  yield { type: "text-start", id: "0" };
  for (let at = 0; at < text.length; at += PIECE) {
    yield { type: "text-delta", id: "0", delta: text.slice(at, at + PIECE) };
  }
  yield { type: "text-end", id: "0" };
  yield finish;
}

/** Taken for the accuracy of a model whose own is not known. */
const ASSUMED = { strong: 0.7, fast: 0.5 };

/** By which the stronger of two models is found: what is known of their accuracy, else their tier. */
export function strengthOf(tier: Tier, accuracy: number | undefined): number {
  return accuracy ?? ASSUMED[tier];
}
