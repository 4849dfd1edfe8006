import type { LanguageModelV4, LanguageModelV4Prompt } from "@ai-sdk/provider";
import { LinkedAbort } from "../../abort.ts";
import { ModelError } from "../../models/model-error.ts";
import type { Part } from "../../models/stream.ts";
import { traced } from "../../tracing.ts";
import { repairJson } from "../structured/repair.ts";
import type { Compare } from "./compare.ts";
import { type Call, composed, partsOf, told } from "./composite.ts";
import type { Draft } from "./draft.ts";
import { type Analysis, analysisPrompt, judgePrompt, writePrompt } from "./fusion-prompts.ts";
import type { Steps } from "./step.ts";
import { stepPart } from "./step.ts";

/** Tokens of an analysis, at most: three lists of short sentences, and room to think. */
const ANALYSIS_TOKENS = 2_048;
/** Sentences of each list of an analysis that are passed on, and characters of each. */
const MOST = { sentences: 8, characters: 600 };

export interface WriterOptions {
  /** Who writes. */
  model: LanguageModelV4;
  drafts: readonly Draft[];
  /** Identifier of the generation, which orders the drafts. */
  generation: string;
  /** Whether pieces are wanted as they come. */
  streamed: boolean;
  steps: Steps;
}

/**
 * The strongest model, which sees the drafts and decides a question that they disagree on. Where its text is joined with the drafts, the answer comes
 * in one piece.
 * @throws what the model throws; ModelError when its text cannot be the answer while a draft can.
 */
export function judge(options: WriterOptions & { join: Compare["join"] | undefined }): LanguageModelV4 {
  const { model, drafts, generation, join, steps } = options;
  const seeing = reprompted(model, (prompt) => judgePrompt(prompt, drafts, generation));
  const judging = told(seeing, { kind: "judge", role: "strong", streamed: options.streamed && !join }, steps);
  if (!join) return judging;

  async function* parts(call: Call): AsyncGenerator<Part> {
    let judged = "";
    for await (const part of partsOf(judging, call)) {
      if (part.type === "text-delta") judged += part.delta;
      else if (part.type !== "finish") yield part;
      else {
        const delta = join?.(drafts, judged);
        if (delta === undefined) throw new ModelError("The judge gives no valid object.", { retryable: false });
        yield { type: "text-delta", id: "0", delta };
        yield part;
      }
    }
  }
  return composed("judge", parts);
}

/**
 * The strongest model, which writes an answer out of the drafts. Before that, `analyst` says in a few sentences what the drafts have in
 * common, where they contradict each other and what they lack; an analysis that cannot be read, or takes longer than `analysisMs`, is left out.
 * @throws what either model throws.
 */
export function writer(options: WriterOptions & { analyst: LanguageModelV4; analysisMs: number }): LanguageModelV4 {
  const { model, analyst, analysisMs, drafts, generation, streamed, steps } = options;

  async function* parts(call: Call): AsyncGenerator<Part> {
    let analysis: Analysis | undefined;
    if (drafts.length > 1) {
      const step = steps.begin("analysis", "strong");
      yield stepPart(step);
      using branch = new LinkedAbort(call.abortSignal);
      const timer = setTimeout(() => branch.abort(), analysisMs);
      try {
        const prompt = analysisPrompt(call.prompt, drafts, generation);
        const { stopSequences: _, temperature: __, ...rest } = call;
        analysis = readAnalysis(
          await textOf(analyst, {
            ...rest,
            abortSignal: branch.signal,
            prompt,
            maxOutputTokens: ANALYSIS_TOKENS,
            responseFormat: { type: "json" },
          }),
        );
      } catch (error) {
        yield stepPart({ ...step, outcome: "failed" });
        if (call.abortSignal?.aborted || !branch.signal.aborted) throw error;
      } finally {
        clearTimeout(timer);
      }
      yield stepPart({ ...step, outcome: analysis ? "ok" : "failed" });
    }
    const write = reprompted(model, (prompt) => writePrompt(prompt, drafts, generation, analysis));
    yield* partsOf(told(write, { kind: "write", role: "strong", streamed }, steps), call);
  }
  return composed("writer", parts);
}

/** A model that gets another prompt than the call's. */
function reprompted(
  model: LanguageModelV4,
  change: (prompt: LanguageModelV4Prompt) => LanguageModelV4Prompt,
): LanguageModelV4 {
  return {
    ...model,
    doGenerate: (call) => model.doGenerate({ ...call, prompt: change(call.prompt) }),
    doStream: (call) => model.doStream({ ...call, prompt: change(call.prompt) }),
  };
}

async function textOf(model: LanguageModelV4, call: Call): Promise<string> {
  const { content } = await traced("analysis", () => model.doGenerate(call), {
    attributes: { "chorus.role": "strong" },
    signal: call.abortSignal,
  });
  return content.map((part) => (part.type === "text" ? part.text : "")).join("");
}

/** What a model was asked to say in JSON, as far as it did. */
function readAnalysis(text: string): Analysis | undefined {
  const json = repairJson(text);
  if (json === undefined) return undefined;
  const given: Record<string, unknown> = { ...JSON.parse(json) };
  const list = (value: unknown): string[] =>
    (Array.isArray(value) ? value : [])
      .filter((each): each is string => typeof each === "string")
      .slice(0, MOST.sentences)
      .map((each) => each.slice(0, MOST.characters));
  const analysis = {
    consensus: list(given.consensus),
    contradictions: list(given.contradictions),
    gaps: list(given.gaps),
  };
  return Object.values(analysis).some((each) => each.length > 0) ? analysis : undefined;
}
