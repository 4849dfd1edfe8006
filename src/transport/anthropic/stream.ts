import type {
  StreamGenerateResponse_Done,
  StreamGenerateResponse_ToolCall,
} from "../../../gen/chorus/v1/generation_pb.js";
import { renameField } from "../call/field-names.ts";
import { type Foreign, noticesJson } from "../call/foreign.ts";
import { type EventFormat, SSE_HEADERS } from "../call/format.ts";
import { stopJson, usageJson } from "./encode.ts";
import { anthropicFailureJson } from "./failure.ts";

const PING = 'event: ping\ndata: {"type":"ping"}\n\n';

/**
 * Writes the events of an answer as Anthropic's API does. The text is written by hand, because encoding a message for
 * each piece takes several times as long. A class, because each event depends on those before it.
 * @param headers of the response, beside those of each stream
 */
export class MessageEvents implements EventFormat {
  readonly headers: readonly string[];
  readonly comment = PING;
  readonly #foreign: Foreign;
  #isStarted = false;
  /** Place of the block that is open, or of the next one. */
  #index = 0;
  #isOpen = false;

  constructor(foreign: Foreign, headers: readonly string[]) {
    this.#foreign = foreign;
    this.headers = [...SSE_HEADERS, ...headers];
  }

  event(event: Parameters<EventFormat["event"]>[0]): string {
    switch (event.type) {
      case "open":
        return this.#start();
      case "trace":
        return "";
      case "tool_call":
        return `${this.#start()}${this.#close()}${this.#callOf(event.call)}`;
      case "delta":
        return `${this.#start()}${this.#openText()}${eventText(
          "content_block_delta",
          `"index":${this.#index},"delta":{"type":"text_delta","text":${JSON.stringify(event.text)}}`,
        )}`;
      case "done":
        return `${this.#start()}${this.#close()}${this.#last(event.done)}${eventText("message_stop")}`;
    }
  }

  end(requestId: string, failure?: Parameters<EventFormat["end"]>[1]): { body: string } {
    if (!failure) return { body: "" };
    const { names } = this.#foreign.terms;
    return { body: `event: error\ndata: ${anthropicFailureJson(renameField(failure, names), requestId)}\n\n` };
  }

  #start(): string {
    if (this.#isStarted) return "";
    this.#isStarted = true;
    const { id, terms, inputTokens } = this.#foreign;
    const usage = `{"input_tokens":${inputTokens()},"cache_creation_input_tokens":0,"cache_read_input_tokens":0,`;
    const message =
      `{"id":${JSON.stringify(id())},"type":"message","role":"assistant","model":${JSON.stringify(terms.model)},` +
      `"content":[],"stop_reason":null,"stop_sequence":null,"usage":${usage}"output_tokens":0},"notices":[]}`;
    return eventText("message_start", `"message":${message}`);
  }

  /** Opens the block of the text. The first one is followed by a `ping`. */
  #openText(): string {
    if (this.#isOpen) return "";
    this.#isOpen = true;
    const block = `"index":${this.#index},"content_block":{"type":"text","text":""}`;
    return `${eventText("content_block_start", block)}${this.#index === 0 ? PING : ""}`;
  }

  /** A call is a whole block, because it leaves when it is complete and checked. */
  #callOf({ id, name, arguments: input }: StreamGenerateResponse_ToolCall): string {
    const block = `{"type":"tool_use","id":${JSON.stringify(id)},"name":${JSON.stringify(name)},"input":{}}`;
    const start = eventText("content_block_start", `"index":${this.#index},"content_block":${block}`);
    const ping = this.#index === 0 ? PING : "";
    const delta = `"index":${this.#index},"delta":{"type":"input_json_delta","partial_json":${JSON.stringify(input)}}`;
    this.#isOpen = true;
    return `${start}${ping}${eventText("content_block_delta", delta)}${this.#close()}`;
  }

  #close(): string {
    if (!this.#isOpen) return "";
    this.#isOpen = false;
    return eventText("content_block_stop", `"index":${this.#index++}`);
  }

  #last(done: StreamGenerateResponse_Done): string {
    return eventText(
      "message_delta",
      `"delta":{${stopJson(done)}},"usage":${usageJson(done)},"notices":${noticesJson(done)}`,
    );
  }
}

/** @param members as JSON, without braces; empty for none */
function eventText(type: string, members = ""): string {
  return `event: ${type}\ndata: {"type":"${type}"${members === "" ? "" : `,${members}`}}\n\n`;
}
