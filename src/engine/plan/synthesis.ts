import { LinkedAbort } from "../../concurrency/abort.ts";
import { complete, type Model, type ModelCall, type Piece, type Prompt } from "../../models/port/model.ts";
import { traced } from "../../telemetry/tracing.ts";
import { repairJson } from "../structured/repair.ts";
import { untrusted } from "../text/untrusted.ts";
import { type PieceGenerator, withPrompt, withStep } from "./composite.ts";
import type { Draft } from "./draft.ts";
import { type FromDrafts, withDrafts } from "./draft-prompt.ts";
import { stepPiece } from "./step.ts";

const ANALYSE =
  "Above is a request. Do not answer it. Below are drafts of an answer to it, from others, in random order. " +
  "Compare them for whoever will write the answer. Reply with one JSON object and nothing else: " +
  '{"consensus":[…],"contradictions":[…],"gaps":[…]}. Each is a list of at most six short ' +
  "sentences: what the drafts agree on and is right; where they contradict each other, and which is right; " +
  "what the request asks for that they lack or get wrong.";

const WRITE =
  "Above is the request. Below are drafts of an answer to it, from others, in random order, " +
  "and an analysis of them where there is one. Write the best " +
  "answer to the request: keep what is right, settle contradictions by your own judgement, fill the gaps, " +
  "leave out what is wrong or not asked for. " +
  "Answer in the form, length and language that the request asks for, as if there were no drafts; do not mention them.";

/** Most tokens of an analysis: three lists of short sentences, and room for a model that thinks first. */
const ANALYSIS_TOKENS = 2_048;
/** Most sentences of each list of an analysis that are passed on, and most characters of each sentence. */
const MAX = { sentences: 8, characters: 600 };

/** Sentences about the drafts. Each list may be empty. */
interface Analysis {
  /** What the drafts agree on and is right. */
  consensus: string[];
  contradictions: string[];
  /** What the drafts lack. */
  gaps: string[];
}

export function analysisPrompt(prompt: Prompt, drafts: readonly Draft[], generation: string) {
  return withDrafts(prompt, ANALYSE, drafts, generation);
}

export function writePrompt(
  prompt: Prompt,
  drafts: readonly Draft[],
  generation: string,
  analysis: Analysis | undefined,
) {
  const notes = analysis ? [untrusted("analysis", JSON.stringify(analysis))] : [];
  return withDrafts(prompt, WRITE, drafts, generation, notes);
}

interface SynthesisOptions extends FromDrafts {
  /** The model that compares the drafts. */
  analyst: Model;
  /** Timeout of the analysis, in milliseconds. */
  analysisMs: number;
  /** What decided the order of the models, as a clause for the trace. */
  reason?: string | undefined;
}

/**
 * Prose fusion: the strongest model writes one answer from several drafts. First `analyst` lists what the drafts have
 * in common, where they contradict each other and what they lack. An unreadable or late analysis is left out.
 * @throws what either model throws.
 */
export function synthesis(options: SynthesisOptions): Model {
  const { model, drafts, generation, streamed, roleOf, reason, steps } = options;

  async function* ask(call: ModelCall): PieceGenerator {
    const analysis = drafts.length > 1 ? yield* analyse(options, call) : undefined;
    const writer = withPrompt(model, (prompt) => writePrompt(prompt, drafts, generation, analysis));
    const detail = (by: string) => `a ${by} model wrote from the drafts${reason ? `; ${reason}` : ""}`;
    yield* withStep(writer, { kind: "write", role: "strong", streamed, detail, roleOf }, steps).ask(call);
  }
  return { name: "synthesis", ask };
}

/** Yields the start and the end of the analysis as steps. */
async function* analyse(options: SynthesisOptions, call: ModelCall): AsyncGenerator<Piece, Analysis | undefined> {
  const { analyst, analysisMs, drafts, generation, steps } = options;
  const step = steps.begin("analysis", "strong");
  yield stepPiece(step);
  using abort = new LinkedAbort(call.signal);
  abort.abortAfter(analysisMs);
  let analysis: Analysis | undefined;
  let isTimeout = false;
  try {
    const { stops: _, temperature: __, ...shared } = call;
    const request: ModelCall = {
      ...shared,
      signal: abort.signal,
      prompt: analysisPrompt(call.prompt, drafts, generation),
      maxTokens: ANALYSIS_TOKENS,
      format: { type: "json" },
      streamed: false,
      step: step.id,
    };
    const { text } = await traced("analysis", () => complete(analyst, request), {
      attributes: { "chorus.role": "strong" },
      signal: abort.signal,
    });
    analysis = readAnalysis(text);
  } catch (error) {
    isTimeout = abort.signal.aborted && !call.signal.aborted;
    if (!isTimeout) {
      yield stepPiece({ ...step, outcome: "failed" });
      throw error;
    }
  }
  const detail = isTimeout ? { detail: "the analysis took too long and is left out" } : {};
  yield stepPiece({ ...step, outcome: analysis ? "ok" : "failed", ...detail });
  return analysis;
}

/** Reads an analysis. Members that are missing or of the wrong type count as empty; undefined when all are. */
function readAnalysis(text: string): Analysis | undefined {
  const json = repairJson(text);
  if (json === undefined) return undefined;
  const members: Record<string, unknown> = { ...JSON.parse(json) };
  const list = (value: unknown): string[] =>
    (Array.isArray(value) ? value : [])
      .filter((each): each is string => typeof each === "string")
      .slice(0, MAX.sentences)
      .map((each) => each.slice(0, MAX.characters).toWellFormed());
  const analysis = {
    consensus: list(members.consensus),
    contradictions: list(members.contradictions),
    gaps: list(members.gaps),
  };
  return Object.values(analysis).some((each) => each.length > 0) ? analysis : undefined;
}
