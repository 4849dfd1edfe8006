import type { LanguageModelV4 } from "@ai-sdk/provider";
import { unary } from "../src/engine/plan/composite.ts";
import { choosePlan, type PlanCriteria } from "../src/engine/plan/plan.ts";
import { Steps } from "../src/engine/plan/step.ts";
import { inOrder, type Member } from "../src/models/catalogue.ts";
import { failover } from "../src/models/failover.ts";
import { ModelError } from "../src/models/model-error.ts";
import type { Tier } from "../src/terms.ts";
import type { Recording } from "./recording.ts";

/** A recorded model that replaces a member of the catalogue. */
export interface Player {
  name: string;
  tier: Tier;
  /** Accuracy that the catalogue states, 0 to 1. */
  accuracy: number | undefined;
  /** Undefined: the model did not run on the question; its call fails. */
  recording: Recording | undefined;
}

/** The result of a plan for a question. */
export interface Outcome {
  text: string;
  /** Name of the model of each call, in order. */
  calls: string[];
}

/** A question and the options of its plan. */
export type Request = Pick<PlanCriteria, "level" | "shape" | "read"> & { prompt: string };

/**
 * Answers a question with recorded models and the plan that the service would choose. A recorded model gives the same
 * answer to every prompt, so a call of the judge returns the answer that the strongest model gave without seeing the
 * drafts.
 * @throws UpstreamError if no model has a recording
 */
export async function replay(crew: readonly Player[], { prompt, ...asked }: Request): Promise<Outcome> {
  const calls: string[] = [];
  const members = crew.map((one): Member => {
    const { name, tier, accuracy } = one;
    const model = replayed(one, () => calls.push(name));
    return { name, vendor: name, tier, model, images: false, ...(accuracy === undefined ? {} : { accuracy }) };
  });
  const tier = (tier: Tier) => failover(inOrder(members, tier).map(({ model }) => model));
  const plan = choosePlan(
    { members, offline: false, tier },
    {
      ...asked,
      kind: "closed",
      difficulty: undefined,
      temperature: undefined,
      streamed: false,
      continues: false,
      hasImages: false,
      deadlineMs: 60_000,
      generation: "",
    },
    new Steps(),
  );
  const { content } = await plan.doGenerate({ prompt: [{ role: "user", content: [{ type: "text", text: prompt }] }] });
  return { text: content.map((part) => (part.type === "text" ? part.text : "")).join(""), calls };
}

/** Text that stands for an output that could not be parsed: prose without an answer. */
export function unread(name: string): string {
  return `The output of ${name} was recorded\nwithout an answer, because it could not be parsed.`;
}

function replayed({ name, recording }: Player, onCall: () => void): LanguageModelV4 {
  return unary({
    specificationVersion: "v4",
    provider: "eval.replay",
    modelId: name,
    supportedUrls: {},
    async doGenerate() {
      onCall();
      if (!recording) throw new ModelError(`${name} has no recording.`, { retryable: false });
      return {
        content: [{ type: "text", text: recording.answer ?? unread(name) }],
        finishReason: { unified: "stop", raw: "stop" },
        usage: {
          inputTokens: { total: undefined, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
          outputTokens: { total: recording.output_tokens, text: undefined, reasoning: undefined },
        },
        warnings: [],
      };
    },
    doStream: () => Promise.reject(new ModelError("A recording cannot be streamed.", { retryable: false })),
  });
}
