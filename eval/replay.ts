import type { Tier } from "../src/contract/terms.ts";
import { choosePlan, type PlanCriteria } from "../src/engine/plan/plan.ts";
import { Steps } from "../src/engine/plan/step.ts";
import type { Member } from "../src/models/catalogue.ts";
import { complete, type Model, type WrittenCall } from "../src/models/port/model.ts";
import { ModelError } from "../src/models/port/model-error.ts";
import type { Recording } from "./recording.ts";

/** A recorded model that replaces a member of the catalogue. */
export interface Player {
  name: string;
  tier: Tier;
  /** Accuracy that the catalogue states, 0 to 1. */
  accuracy: number | undefined;
  /** Undefined: the model did not run on the question; its call fails. */
  recording: Recording | undefined;
  /** Calls of tools that belong to the recording. */
  written?: readonly WrittenCall[];
  /** Default: a vendor of its own. */
  vendor?: string;
  price?: Member["price"];
}

/** The result of a plan for a question. */
export interface Outcome {
  text: string;
  /** Calls of tools that the answer asks for. */
  written: readonly WrittenCall[];
  /** Name of the model of each call, in order. */
  calls: string[];
}

/** A question and the options of its plan. Default: a closed question of unknown difficulty. */
export type Request = Pick<PlanCriteria, "level" | "shape" | "read"> &
  Partial<Pick<PlanCriteria, "effort" | "kind" | "difficulty" | "knowledge" | "readCalls">> & { prompt: string };

/**
 * Answers a question with recorded models and the plan that the service would choose. A recorded model gives the same
 * answer to every prompt, so a call of the judge returns the answer that the strongest model gave without seeing the
 * drafts.
 * @throws UpstreamError if no model has a recording
 */
export async function replay(crew: readonly Player[], { prompt, ...asked }: Request): Promise<Outcome> {
  const calls: string[] = [];
  const members = crew.map((one): Member => {
    const { name, tier, accuracy, vendor = name, price } = one;
    const model = replayed(one, () => calls.push(name));
    const stated = { ...(accuracy === undefined ? {} : { accuracy }), ...(price ? { price } : {}) };
    return { name, vendor, fingerprint: name, tier, model, images: false, ...stated };
  });
  const plan = choosePlan(
    { members, offline: false },
    {
      kind: "closed",
      ...asked,
      streamed: false,
      continues: false,
      hasImages: false,
      deadlineMs: DEADLINE_MS,
      generation: "",
    },
    new Steps(),
  );
  const { text, calls: written } = await complete(plan, {
    prompt: { system: "", messages: [{ role: "user", text: prompt }] },
    signal: new AbortController().signal,
    endsAt: performance.now() + DEADLINE_MS,
    streamed: false,
  });
  return { text, written, calls };
}

/** Text that stands for an output that could not be parsed: prose without an answer. */
export function unread(name: string): string {
  return `The output of ${name} was recorded\nwithout an answer, because it could not be parsed.`;
}

/** Time that a plan has for one question. Recordings answer at once. */
const DEADLINE_MS = 60_000;

function replayed({ name, recording, written = [] }: Player, onCall: () => void): Model {
  return {
    name,
    async *ask() {
      onCall();
      if (!recording) throw new ModelError(`${name} has no recording.`, { retryable: false });
      if (written.length > 0) yield { type: "calls", calls: written };
      else yield { type: "text", text: recording.answer ?? unread(name) };
      const outputTokens = recording.output_tokens ?? 0;
      const usage = { inputTokens: 0, cachedTokens: 0, outputTokens, thinkingTokens: 0 };
      yield { type: "end", reason: "stop", usage, model: name };
    },
  };
}
