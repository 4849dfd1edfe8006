import type { LanguageModelV4, LanguageModelV4CallOptions, LanguageModelV4GenerateResult } from "@ai-sdk/provider";
import { UpstreamError } from "../../models/failover.ts";
import { type Part, toStream } from "../../models/stream.ts";
import { tracedParts } from "../../tracing.ts";
import { partStep, type Step, type Steps, stepPart } from "./step.ts";

export type Call = LanguageModelV4CallOptions;
export type FinishPart = Extract<Part, { type: "finish" }>;

/** What a model has to say, from its first part on; nothing runs before that is asked for. */
export async function* partsOf(model: LanguageModelV4, call: Call): AsyncGenerator<Part> {
  yield* (await model.doStream(call)).stream;
}

/** Makes a model out of what it streams. Its `doGenerate` is the fold of that, with the steps in `providerMetadata.chorus.steps`. */
export function composed(name: string, parts: (call: Call) => AsyncGenerator<Part>): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "chorus.plan",
    modelId: name,
    supportedUrls: {},
    doStream: async (call) => ({ stream: toStream(parts(call)) }),
    doGenerate: (call) => fold(parts(call)),
  };
}

async function fold(parts: AsyncIterable<Part>): Promise<LanguageModelV4GenerateResult> {
  const steps: Step[] = [];
  let text = "";
  for await (const part of parts) {
    const step = partStep(part);
    if (step) steps.push(step);
    else if (part.type === "text-delta") text += part.delta;
    else if (part.type === "finish") {
      const { type: _, providerMetadata, ...end } = part;
      const chorus = { ...providerMetadata?.chorus, steps: steps.map((step) => ({ ...step })) };
      return {
        content: [{ type: "text", text }],
        ...end,
        warnings: [],
        providerMetadata: { ...providerMetadata, chorus },
      };
    }
  }
  throw new UpstreamError([]);
}

/** The parts of an answer in one piece. */
function* wholeParts({
  content,
  finishReason,
  usage,
  providerMetadata,
}: LanguageModelV4GenerateResult): Generator<Part> {
  for (const part of content) if (part.type === "text") yield { type: "text-delta", id: "", delta: part.text };
  yield { type: "finish", finishReason, usage, ...(providerMetadata ? { providerMetadata } : {}) };
}

/** A model whose stream is one call in one piece: where nobody reads along, that is cheaper, and can be replaced until it is whole. */
export function inOnePiece(model: LanguageModelV4): LanguageModelV4 {
  async function* parts(call: Call): AsyncGenerator<Part> {
    yield* wholeParts(await model.doGenerate(call));
  }
  return { ...model, doStream: async (call) => ({ stream: toStream(parts(call)) }) };
}

export interface Telling {
  kind: string;
  role: string;
  /** Whether pieces are wanted as they come; else it works as `inOnePiece` does. */
  streamed: boolean;
}

/** A model that tells of its work as one step. The beginning is told before the model is asked. */
export function told(model: LanguageModelV4, { kind, role, streamed }: Telling, steps: Steps): LanguageModelV4 {
  async function* parts(call: Call): AsyncGenerator<Part> {
    const step = steps.begin(kind, role);
    yield stepPart(step);
    try {
      const source = streamed ? (await model.doStream(call)).stream : wholeParts(await model.doGenerate(call));
      for await (const part of source) {
        if (part.type === "finish") yield stepPart({ ...step, outcome: "ok" });
        yield part;
      }
    } catch (error) {
      yield stepPart({ ...step, outcome: "failed" });
      throw error;
    }
  }
  return composed(model.modelId, (call) =>
    tracedParts(kind, parts(call), { attributes: { "chorus.role": role }, signal: call.abortSignal }),
  );
}
