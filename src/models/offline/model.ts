import type { ModelEntry } from "../port/entry.ts";
import type { End, Model, ModelCall, Piece, WrittenCall } from "../port/model.ts";
import { demandedCall } from "./call.ts";
import { read } from "./read.ts";
import { respond } from "./respond.ts";

/** A token is taken as four characters. */
const TOKEN_CHARACTERS = 4;

/** A model without a network. */
export function createOfflineModel({ name }: Pick<ModelEntry, "name">): Model {
  async function* ask(call: ModelCall): AsyncGenerator<Piece, void, undefined> {
    const { text, calls, end } = generate(call, name);
    // Word by word if streamed. The next one is made when the reader asks for it, so that nothing is buffered and an
    // abort shows at once.
    for (const [part] of text.matchAll(call.streamed ? /\s*\S{1,80}|\s+/gu : /.+/gsu)) {
      call.signal.throwIfAborted();
      yield { type: "text", text: part };
    }
    if (calls.length > 0) yield { type: "calls", calls };
    yield end;
  }
  return { name, ask };
}

function generate(call: ModelCall, model: string): { text: string; calls: WrittenCall[]; end: End } {
  call.signal.throwIfAborted();
  const { prompt, format, tools, maxTokens = Number.POSITIVE_INFINITY, stops = [] } = call;
  const reading = read(prompt);
  const called = tools && demandedCall(tools, reading);
  const schema = format?.type === "schema" ? format.schema : undefined;
  const answer = called ? "" : respond(reading, format !== undefined, schema);
  const rest = answer.startsWith(reading.begun) ? answer.slice(reading.begun.length) : answer;
  const ends = stops.map((stop) => (stop ? rest.indexOf(stop) : -1)).filter((at) => at >= 0);
  const characters = [...rest.slice(0, Math.min(rest.length, ...ends))];
  const text = characters.slice(0, maxTokens * TOKEN_CHARACTERS).join("");
  const tokens = (length: number) => Math.ceil(length / TOKEN_CHARACTERS);
  const inputTokens = tokens(prompt.messages.reduce((sum, { text }) => sum + text.length, 0));
  const usage = {
    inputTokens,
    cachedTokens: 0,
    outputTokens: tokens((called?.arguments ?? text).length),
    thinkingTokens: 0,
  };
  const reason = characters.length > maxTokens * TOKEN_CHARACTERS ? "length" : "stop";
  return { text, calls: called ? [called] : [], end: { type: "end", reason, usage, model } };
}
