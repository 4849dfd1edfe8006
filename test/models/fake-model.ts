import type { Tier } from "../../src/contract/terms.ts";
import type { Catalogue } from "../../src/models/catalogue.ts";
import { failover } from "../../src/models/failover.ts";
import { tierFirst } from "../../src/models/order.ts";
import type { End, EndReason, Model, ModelCall, Piece, Pieces } from "../../src/models/port/model.ts";

export const USAGE = { inputTokens: 3, cachedTokens: 0, outputTokens: 2, thinkingTokens: 0 };

/** A call without anything but a short prompt. It is streamed unless `more` says otherwise. */
export function call(more: Partial<ModelCall> = {}): ModelCall {
  return {
    prompt: { system: "", messages: [{ role: "user", text: "Hi" }] },
    signal: new AbortController().signal,
    endsAt: performance.now() + 60_000,
    streamed: true,
    ...more,
  };
}

/** The models of a catalogue in turn, those of a tier first. */
export function tierOf({ members }: Pick<Catalogue, "members">, tier: Tier): Model {
  return failover(tierFirst(members, tier).map(({ model }) => model));
}

export function text(text: string): Piece {
  return { type: "text", text };
}

export function end(reason: EndReason = "stop", more: Partial<End> = {}): End {
  return { type: "end", reason, usage: USAGE, model: "fake", ...more };
}

/** A whole completion, one piece for each text. */
export function pieces(...texts: string[]): Piece[] {
  return [...texts.map(text), end()];
}

export type Script = (call: ModelCall) => Pieces | AsyncIterable<Piece> | Iterable<Piece> | Promise<Iterable<Piece>>;

/** A model made of functions, one for each call in order; the last one stands for all further calls. */
export function fakeModel(...scripts: Script[]): Model & { calls: ModelCall[] } {
  const calls: ModelCall[] = [];
  return {
    name: "fake",
    calls,
    async *ask(call) {
      calls.push(call);
      const script = scripts.length > 1 ? scripts.shift() : scripts[0];
      if (!script) throw new Error("The fake model has no script.");
      yield* await script(call);
    },
  };
}

/** Reads a completion to its end. */
export async function collect(source: Pieces | AsyncIterable<Piece>): Promise<Piece[]> {
  const all: Piece[] = [];
  for await (const piece of source) all.push(piece);
  return all;
}

export function textOf(all: readonly Piece[]): string {
  return all.map((piece) => (piece.type === "text" ? piece.text : "")).join("");
}

/** Ends only by the abort of the call, with its reason. */
export function untilAborted({ signal }: ModelCall): Promise<never> {
  return new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
