import type { Model, ModelCall, Piece } from "./port/model.ts";
import { createStopper } from "./stop.ts";

const PROGRESS: Piece = { type: "progress" };

/**
 * Adds that a whole completion ends at a stop sequence and contains it, if the call asks for that. Most vendors do not
 * say which sequence has ended a completion, so they do not get them. The completion is streamed, which lets it end in
 * time, but its text comes at the end: until then it can be repeated or replaced like any whole completion.
 */
export function untilStop(model: Model): Model {
  return {
    name: model.name,
    ask: (call) => (call.containsStop && call.stops ? askUntil(model, call, call.stops) : model.ask(call)),
  };
}

async function* askUntil(
  model: Model,
  { stops: _, ...call }: ModelCall,
  stops: readonly string[],
): AsyncGenerator<Piece, undefined, undefined> {
  const stopper = createStopper(stops);
  let text = "";
  for await (const piece of model.ask({ ...call, streamed: true })) {
    if (piece.type === "text") {
      text += piece.text;
      const { stopped } = stopper.push(piece.text);
      yield stopped ? { type: "text", text } : PROGRESS;
      if (!stopped) continue;
      yield { type: "end", reason: "stop", usage: undefined, model: model.name };
      return;
    }
    if (text !== "" && piece.type !== "progress") {
      yield { type: "text", text };
      text = "";
    }
    yield piece;
  }
}
