import type {
  StreamGenerateResponse_Done,
  StreamGenerateResponse_ToolCall,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { Failure } from "../../contract/failure.ts";
import { renameField } from "../call/field-names.ts";
import { type Foreign, noticesJson } from "../call/foreign.ts";
import { COMMENT, type EventFormat, SSE_HEADERS } from "../call/format.ts";
import { now } from "../openai/encode.ts";
import { openaiError } from "../openai/failure.ts";
import type { ResponseTerms } from "./decode.ts";
import { callItem, messageId, messageItem, partJson, type ResponseState, responseJson, statusOf } from "./encode.ts";

/** The event of a piece of text begins and ends so. It has few parts, because each part costs time for each piece. */
const DELTA = 'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","sequence_number":';
const DELTA_END = ',"logprobs":[]}\n\n';

/**
 * Writes the events of an answer as the typed events of the Responses API. The text is written by hand, because
 * encoding a message for each piece takes several times as long. A class, because each event depends on those before
 * it.
 */
export class ResponseEvents implements EventFormat {
  readonly headers = SSE_HEADERS;
  readonly comment = COMMENT;
  readonly #foreign: Foreign;
  readonly #terms: ResponseTerms;
  readonly #createdAt = now();
  #sequence = 0;
  #isStarted = false;
  /** Items that are complete. */
  readonly #output: string[] = [];
  /** Text of the message that is open; undefined: none is. */
  #text: string | undefined;
  /** Members of each event about the text of the message, and its end. */
  #textHead = "";
  #deltaHead = "";

  constructor(foreign: Foreign, terms: ResponseTerms) {
    this.#foreign = foreign;
    this.#terms = terms;
  }

  event(event: Parameters<EventFormat["event"]>[0]): string {
    switch (event.type) {
      case "open":
        return this.#start();
      case "trace":
        return "";
      case "delta": {
        const before = this.#text === undefined ? this.#openText() : "";
        this.#text += event.text;
        const delta = DELTA + this.#sequence++ + this.#deltaHead + JSON.stringify(event.text) + DELTA_END;
        return before === "" ? delta : before + delta;
      }
      case "tool_call":
        return this.#start() + this.#closeText("completed") + this.#call(event.call);
      case "done":
        return this.#last(event.done);
    }
  }

  end(_: string, failure?: Failure): { body: string } {
    if (!failure) return { body: "" };
    const named = renameField(failure, this.#terms.names);
    const { message, code, param, type } = openaiError(named);
    // OpenAI's API has the members beside the type, the Open Responses specification in `error`.
    const error = JSON.stringify({ code, message, param, error: { type, code, message, param } }).slice(1, -1);
    return {
      body:
        this.#start() +
        this.#event("error", error) +
        this.#event("response.failed", this.#response({ status: "failed", failure: named })),
    };
  }

  #start(): string {
    if (this.#isStarted) return "";
    this.#isStarted = true;
    const response = this.#response({ status: "in_progress" });
    return this.#event("response.created", response) + this.#event("response.in_progress", response);
  }

  #openText(): string {
    const start = this.#start();
    const id = this.#foreign.id();
    const place = `"output_index":${this.#output.length},`;
    this.#text = "";
    this.#textHead = `"item_id":${JSON.stringify(messageId(id))},${place}"content_index":0,`;
    this.#deltaHead = `,${this.#textHead}"delta":`;
    const item = messageItem(id, "", "in_progress");
    const added = this.#event("response.output_item.added", `${place}"item":${item}`);
    return start + added + this.#event("response.content_part.added", `${this.#textHead}"part":${partJson("")}`);
  }

  #closeText(status: "completed" | "incomplete"): string {
    const text = this.#text;
    if (text === undefined) return "";
    this.#text = undefined;
    const part = partJson(text);
    const item = messageItem(this.#foreign.id(), part, status);
    const place = `"output_index":${this.#output.length},`;
    this.#output.push(item);
    const whole = `${this.#textHead}"text":${JSON.stringify(text)},"logprobs":[]`;
    return (
      this.#event("response.output_text.done", whole) +
      this.#event("response.content_part.done", `${this.#textHead}"part":${part}`) +
      this.#event("response.output_item.done", `${place}"item":${item}`)
    );
  }

  #call(call: StreamGenerateResponse_ToolCall): string {
    const item = callItem(this.#foreign.id(), call, this.#terms);
    const place = `"output_index":${this.#output.length}`;
    const head = `"item_id":${JSON.stringify(item.id)},${place}`;
    const text = JSON.stringify(item.text);
    const whole = item.json("completed", item.text);
    this.#output.push(whole);
    const name = item.member === "arguments" ? `"name":${JSON.stringify(item.name)},` : "";
    return (
      this.#event("response.output_item.added", `${place},"item":${item.json("in_progress", "")}`) +
      this.#event(`response.${item.event}.delta`, `${head},"delta":${text}`) +
      this.#event(`response.${item.event}.done`, `${head},${name}"${item.member}":${text}`) +
      this.#event("response.output_item.done", `${place},"item":${whole}`)
    );
  }

  #last(done: StreamGenerateResponse_Done): string {
    const { finishReason, usage } = done;
    const status = statusOf(finishReason);
    // An answer without any text and calls is an empty message.
    const opened = this.#text === undefined && this.#output.length === 0 ? this.#openText() : "";
    const before = this.#start() + opened + this.#closeText(status);
    const response = this.#response({ status, finishReason, usage, notices: noticesJson(done) });
    return before + this.#event(`response.${status}`, response);
  }

  /** The whole response, as the member of an event. */
  #response(state: Omit<ResponseState, "id" | "createdAt" | "output">): string {
    const whole = { id: this.#foreign.id(), createdAt: this.#createdAt, output: this.#output, ...state };
    return `"response":${responseJson(whole, this.#terms)}`;
  }

  /** @param members as JSON, without braces */
  #event(type: string, members: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${this.#sequence++},${members}}\n\n`;
  }
}
