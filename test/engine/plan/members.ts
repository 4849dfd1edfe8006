import type { Tier } from "../../../src/contract/terms.ts";
import type { PanelMember } from "../../../src/engine/plan/draft.ts";
import type { PlanCriteria } from "../../../src/engine/plan/plan.ts";
import type { Catalogue, Member } from "../../../src/models/catalogue.ts";
import type { ModelCall, Piece, Step } from "../../../src/models/port/model.ts";
import { end, fakeModel, text, untilAborted } from "../../models/fake-model.ts";

/** A prompt for prose at low effort. */
export const PROSE: PlanCriteria = {
  level: "low",
  kind: "prose",
  shape: "text",
  streamed: false,
  continues: false,
  hasImages: false,
  deadlineMs: 180_000,
  generation: "gen_1",
  read: () => undefined,
};

export type Fake = ReturnType<typeof fakeModel>;

/** How a model answers a call: a text, or a function that gives the pieces. */
export type Says = string | ((call: ModelCall) => Promise<Piece[]>);

/** A model that gives the answers of a list in order, and then repeats the last one. */
export function saying(...answers: Says[]): Fake {
  return fakeModel(...answers.map((says) => (typeof says === "string" ? () => completion(says) : says)));
}

/** A completion with one piece for each word. */
export function completion(answer: string): Piece[] {
  const words = answer === "" ? [] : answer.split(/(?<= )/);
  return [...words.map(text), end()];
}

export const dead: Says = async () => {
  throw new Error("dead");
};

export const silent: Says = untilAborted;

export function cutOff(answer: string): Says {
  return async () => [text(answer), end("length")];
}

/** A model that answers only after `release`. */
export function held(answer: string) {
  const { promise, resolve } = Promise.withResolvers<void>();
  let cancelled = false;
  const says: Says = async (call) => {
    call.signal.addEventListener("abort", () => {
      cancelled = true;
    });
    await Promise.race([promise, untilAborted(call)]);
    return completion(answer);
  };
  return { says, model: saying(says), release: resolve, isCancelled: () => cancelled };
}

export function asMembers(...models: Fake[]): PanelMember[] {
  return models.map((model) => ({ role: "fast", model }));
}

/** A catalogue of scripted models. */
export function catalogueOf(
  ...list: Array<{ tier: Tier; vendor: string; model: Fake } & Partial<Member>>
): Pick<Catalogue, "members" | "offline"> {
  const members = list.map((one, i): Member => ({ name: `m${i}`, fingerprint: `f${i}`, images: false, ...one }));
  return {
    members,
    offline: members.every(({ vendor }) => vendor === "offline"),
  };
}

/** Each step as `kind role outcome`, in the order of the stream. */
export function stepsOf(all: readonly Piece[]): string[] {
  return all.flatMap((piece) => (piece.type === "step" ? stepWord(piece.step) : []));
}

export function stepWord({ kind, role, outcome }: Step): string {
  return `${kind} ${role} ${outcome ?? "…"}`;
}
