import type { LanguageModelV4 } from "@ai-sdk/provider";
import { unary } from "../src/engine/plan/composite.ts";
import { choosePlan, type PlanCriteria } from "../src/engine/plan/plan.ts";
import { Steps } from "../src/engine/plan/step.ts";
import { inOrder, type Member } from "../src/models/catalogue.ts";
import { failover } from "../src/models/failover.ts";
import { ModelError } from "../src/models/model-error.ts";
import type { Tier } from "../src/terms.ts";
import type { Recording } from "./recording.ts";

/** A recorded model in the place of a member of the catalogue. */
export interface Player {
  name: string;
  tier: Tier;
  /** Share of questions that it gets right, 0 to 1, as far as the engine is to know it. */
  accuracy: number | undefined;
  /** Undefined: it never ran on the question, and fails. */
  recording: Recording | undefined;
}

/** What a plan made of a question. */
export interface Outcome {
  text: string;
  /** Names of the models that were called, in order, each as often as it was. */
  calls: string[];
}

/** How a question is asked of a plan. */
export type Request = Pick<PlanCriteria, "level" | "shape" | "read"> & { prompt: string };

/**
 * Answers a question with recorded models through the plan that the service would choose for it. A model answers the same whatever it is asked, so
 * a judge call gives the answer that the strongest model gave without having seen the drafts.
 * @throws UpstreamError when no model has a recording.
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

/** What a model says whose output could not be read when it was recorded: prose without an answer. */
export function unread(name: string): string {
  return `The output of ${name} was recorded\nas one that holds no answer which could be read.`;
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
    doStream: () => Promise.reject(new ModelError("A recording comes in one piece.", { retryable: false })),
  });
}
