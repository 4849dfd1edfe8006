import type { LanguageModelV4GenerateResult } from "@ai-sdk/provider";
import type { PanelMember } from "../../../src/engine/plan/draft.ts";
import { partStep, type Step } from "../../../src/engine/plan/step.ts";
import type { Catalogue, Member } from "../../../src/models/catalogue.ts";
import { inOrder } from "../../../src/models/catalogue.ts";
import { failover } from "../../../src/models/failover.ts";
import type { Part } from "../../../src/models/stream.ts";
import type { Tier } from "../../../src/terms.ts";
import { type Call, fakeModel, parts, result, untilAborted } from "../../models/fake-model.ts";

export type Fake = ReturnType<typeof fakeModel>;

/** What a model does with a call: the text that it says, or whatever the function does. */
export type Says = string | ((call: Call) => Promise<LanguageModelV4GenerateResult>);

/** A model that says the same however it is called; of a list, each item once and the last one for good. */
export function saying(...texts: Says[]): Fake {
  const steps = texts.map((says) => (typeof says === "string" ? async () => result(says) : says));
  return fakeModel({
    generate: steps,
    stream: steps.map(
      (step) =>
        async function* (call: Call): AsyncGenerator<Part> {
          const { content } = await step(call);
          yield* parts(...content.flatMap((part) => (part.type === "text" ? part.text.split(/(?<= )/) : [])));
        },
    ),
  });
}

export const dead: Says = async () => {
  throw new Error("dead");
};

export const silent: Says = ({ abortSignal }) => untilAborted(abortSignal);

export function cutOff(text: string): Says {
  return async () => result(text, "length");
}

/** A model that answers once it is let go, and a look at whether its call was cancelled. */
export function held(text: string) {
  const { promise, resolve } = Promise.withResolvers<void>();
  let cancelled = false;
  const model = saying(async ({ abortSignal }) => {
    abortSignal?.addEventListener("abort", () => {
      cancelled = true;
    });
    await Promise.race([promise, untilAborted(abortSignal)]);
    return result(text);
  });
  return { model, release: resolve, isCancelled: () => cancelled };
}

export function asMembers(...models: Fake[]): PanelMember[] {
  return models.map((model) => ({ role: "fast", model }));
}

/** A catalogue of scripted models. */
export function catalogueOf(
  ...list: Array<{ tier: Tier; vendor: string; model: Fake } & Partial<Member>>
): Pick<Catalogue, "members" | "offline" | "tier"> {
  const members = list.map((one, i): Member => ({ name: `m${i}`, images: false, ...one }));
  return {
    members,
    offline: members.every(({ vendor }) => vendor === "offline"),
    tier: (tier) => failover(inOrder(members, tier).map(({ model }) => model)),
  };
}

/** Each step as `kind role outcome`, in the order of the stream. */
export function stepsOf(all: readonly Part[]): string[] {
  return all.flatMap((part) => partStep(part) ?? []).map(stepWord);
}

export function stepWord({ kind, role, outcome }: Step): string {
  return `${kind} ${role} ${outcome ?? "…"}`;
}
