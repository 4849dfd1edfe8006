import type { ModelEntry } from "../../config/config.ts";
import type { End, Model, ModelCall, Piece } from "../model.ts";
import { read } from "./read.ts";
import { respond } from "./respond.ts";

/** A token is taken as four characters. */
const TOKEN_CHARACTERS = 4;

/** A model without a network. `fast` reads from the beginning, `strong` weighs the whole text. */
export function createOfflineModel({ name, tier }: Pick<ModelEntry, "name" | "tier">): Model {
  async function* ask(call: ModelCall): AsyncGenerator<Piece, void, undefined> {
    const { text, end } = generate(call);
    if (!call.streamed) {
      if (text !== "") yield { type: "text", text };
    } else {
      // Word by word. The next one is made when the reader asks for it, so that nothing is buffered and an abort shows
      // at once.
      for (const [word] of text.matchAll(/\s*\S{1,80}|\s+/gu)) {
        call.signal.throwIfAborted();
        yield { type: "text", text: word };
      }
    }
    yield end;
  }

  function generate(call: ModelCall): { text: string; end: End } {
    call.signal.throwIfAborted();
    const { prompt, format, maxTokens = Number.POSITIVE_INFINITY, stops = [] } = call;
    const reading = read(prompt);
    const schema = format?.type === "schema" ? format.schema : undefined;
    const answer = respond(reading, tier, format !== undefined, schema);
    const rest = answer.startsWith(reading.begun) ? answer.slice(reading.begun.length) : answer;
    const ends = stops.map((stop) => rest.indexOf(stop)).filter((at, i) => at >= 0 && stops[i] !== "");
    const characters = [...rest.slice(0, Math.min(rest.length, ...ends))];
    const text = characters.slice(0, maxTokens * TOKEN_CHARACTERS).join("");
    const [inputTokens = 0, outputTokens = 0] = [JSON.stringify(prompt.turns), text].map((part) =>
      Math.ceil(part.length / TOKEN_CHARACTERS),
    );
    const reason = characters.length > maxTokens * TOKEN_CHARACTERS ? "length" : "stop";
    const usage = { inputTokens, cachedTokens: 0, outputTokens, thinkingTokens: 0 };
    return { text, end: { type: "end", reason, usage, model: name } };
  }

  return { name, ask };
}
