import type {
  LanguageModelV4,
  LanguageModelV4CallOptions,
  LanguageModelV4GenerateResult,
  LanguageModelV4Prompt,
} from "@ai-sdk/provider";
import { UpstreamError } from "../../models/failover.ts";
import { type Part, toStream } from "../../models/stream.ts";
import { tracedParts } from "../../tracing.ts";
import { partStep, type Step, type Steps, stepPart } from "./step.ts";

/** One call of a model. */
export type Call = LanguageModelV4CallOptions;
export type FinishPart = Extract<Part, { type: "finish" }>;

/** The stream of one call. The call starts when the first part is read. */
export async function* streamOf(model: LanguageModelV4, call: Call): AsyncGenerator<Part> {
  yield* (await model.doStream(call)).stream;
}

/**
 * Makes a model from the function that streams its calls. `doGenerate` collects the stream and puts the steps into
 * `providerMetadata.chorus.steps`.
 */
export function compositeModel(name: string, stream: (call: Call) => AsyncGenerator<Part>): LanguageModelV4 {
  return {
    specificationVersion: "v4",
    provider: "chorus.plan",
    modelId: name,
    supportedUrls: {},
    doStream: async (call) => ({ stream: toStream(stream(call)) }),
    doGenerate: (call) => collect(stream(call)),
  };
}

async function collect(parts: AsyncIterable<Part>): Promise<LanguageModelV4GenerateResult> {
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

/** The result of a unary call as the parts of a stream. */
function* resultParts(result: LanguageModelV4GenerateResult): Generator<Part> {
  const { content, finishReason, usage, providerMetadata } = result;
  for (const part of content) if (part.type === "text") yield { type: "text-delta", id: "", delta: part.text };
  yield { type: "finish", finishReason, usage, ...(providerMetadata ? { providerMetadata } : {}) };
}

/** A model that makes unary calls only: its stream is the result of one, in one piece. */
export function unary(model: LanguageModelV4): LanguageModelV4 {
  async function* parts(call: Call): AsyncGenerator<Part> {
    yield* resultParts(await model.doGenerate(call));
  }
  return { ...model, doStream: async (call) => ({ stream: toStream(parts(call)) }) };
}

/** A model that gets a changed prompt. */
export function withPrompt(
  model: LanguageModelV4,
  change: (prompt: LanguageModelV4Prompt) => LanguageModelV4Prompt,
): LanguageModelV4 {
  return {
    ...model,
    doGenerate: (call) => model.doGenerate({ ...call, prompt: change(call.prompt) }),
    doStream: (call) => model.doStream({ ...call, prompt: change(call.prompt) }),
  };
}

interface StepOptions {
  /** See `Step.kind`. */
  kind: string;
  /** See `Step.role`. */
  role: string;
  /** Whether the model streams. If not it makes unary calls, which are cheaper and can be replaced until they end. */
  streamed: boolean;
}

/** A model that reports each call as one step: its start before the model is called, its end before the finish part. */
export function withStep(model: LanguageModelV4, options: StepOptions, steps: Steps): LanguageModelV4 {
  const { kind, role, streamed } = options;

  async function* parts(call: Call): AsyncGenerator<Part> {
    const step = steps.begin(kind, role);
    yield stepPart(step);
    try {
      const source = streamed ? (await model.doStream(call)).stream : resultParts(await model.doGenerate(call));
      for await (const part of source) {
        if (part.type === "finish") yield stepPart({ ...step, outcome: "ok" });
        yield part;
      }
    } catch (error) {
      yield stepPart({ ...step, outcome: "failed" });
      throw error;
    }
  }
  return compositeModel(model.modelId, (call) =>
    tracedParts(kind, parts(call), { attributes: { "chorus.role": role }, signal: call.abortSignal }),
  );
}
