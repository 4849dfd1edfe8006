import { NO_PART } from "../concurrency/parts.ts";
import { traceHeaders } from "../telemetry/tracing.ts";
import type { HttpClient } from "./http.ts";
import { LargeParts } from "./large-body.ts";
import { createOfflineModel } from "./offline/model.ts";
import { CallOptions, type Learned, unopenedIn } from "./options.ts";
import type { ModelEntry, Vendor } from "./port/entry.ts";
import type { Model, ModelCall, NextPiece, Piece, Pieces } from "./port/model.ts";
import { cutOff, ModelError } from "./port/model-error.ts";
import { readFailure } from "./refusal.ts";
import type { HttpResponse } from "./vendor-response.ts";
import { anthropic } from "./wire/anthropic.ts";
import { Collector } from "./wire/collector.ts";
import { google } from "./wire/google.ts";
import { openai } from "./wire/openai.ts";
import { responses } from "./wire/responses.ts";
import { SseParser } from "./wire/sse.ts";
import type { Unopened } from "./wire/think.ts";
import { type Option, SCHEMA_FORMS, type WireFormat } from "./wire/wire.ts";
import { takesCalls, wireCall } from "./wire-call.ts";

/** The wire format of each vendor. That of `offline` is not used. */
const FORMATS: Readonly<Record<Vendor, WireFormat>> = {
  ...{ openai, anthropic, google },
  ...{ "openai-compatible": openai, offline: openai },
};

/** The wire format that a model speaks. */
export function formatOf({ vendor, api }: ModelEntry): WireFormat {
  return api === "responses" ? responses : FORMATS[vendor];
}

/** Most refusals of options in one call; one more fails it. */
const MAX_REFUSALS = 12;

const PROGRESS: Piece = { type: "progress" };
const IDLE: Piece = { type: "progress", isIdle: true };
/** What a server sends while a call waits there, such as `: keep-alive`. */
const COMMENTS = /^(?:(?::[^\r\n]*)?\r?\n)+$/;

/**
 * Creates a model of the catalogue that speaks its vendor's wire format.
 *
 * If the model refuses an option, the call is repeated with another form of the option or without it, and later calls
 * start with the form that worked. A JSON Schema is sent as it is written, or in the prompt if the model does not
 * accept it. If a model used up a small ceiling by thinking before any text, the call is repeated once with room to
 * think. `end` comes after the vendor's terminal frame, or after its end reason if nothing that can be read follows;
 * anything after the terminal frame is dropped.
 */
export function createVendorModel(entry: ModelEntry, http: HttpClient): Model {
  if (entry.vendor === "offline") return createOfflineModel(entry);
  const format = formatOf(entry);
  const base = baseAddress(entry);
  const fixed = { "content-type": "application/json", "accept-encoding": "identity", ...format.headers(entry) };
  const learned: Learned = {
    forms: {
      ...{ temperature: 0, stops: 0, maxTokens: 0, reasoning: 0, cacheKey: 0, usage: 0 },
      ...{ strictTools: 0, toolChoice: 0, parallel: 0, toolReasoning: 0, toolFormat: 0, toolTurn: 0, system: 0 },
      ...{ thoughts: 0, signature: 0 },
      // A model that takes no schema gets it in the prompt.
      format: entry.jsonSchema ? 0 : SCHEMA_FORMS,
    },
    valueForms: new Map(),
    maxTokens: entry.maxOutputTokens ?? Number.POSITIVE_INFINITY,
    thinks: "no",
    unopened: entry.vendor === "openai-compatible" && entry.thinks ? "perhaps" : "no",
  };

  /** Sends a call until the model takes its options. @throws ModelError */
  async function open(asked: ModelCall): Promise<Opened> {
    // The server would look for stop sequences in the thinking, too. The engine finds them in the text.
    const call = asked.stops && unopenedIn(learned, asked) !== "no" ? { ...asked, stops: [] } : asked;
    const options = new CallOptions(format, learned, call);
    const large = new LargeParts();
    let refused: { option: Option; body: string; error: ModelError } | undefined;
    for (let refusals = 0; ; ) {
      const sent = wireCall(call, entry, format, options);
      const used = options.forms;
      const marked = { ...sent, prompt: large.mark(sent.prompt) };
      const { path, body } = format.request(entry, marked, used);
      if (refused?.body === body) {
        // The next form of the refused option reads the same for this call.
        if (!options.skip(refused.option, sent, used)) throw refused.error;
        continue;
      }
      const filled = large.fill(body);
      const response = await http.post({
        ...base,
        path: base.path + path,
        headers: { ...fixed, ...traceHeaders() },
        body: typeof filled === "string" ? filled : await filled,
        signal: call.signal,
        streamed: call.streamed,
      });
      if (response.status >= 200 && response.status < 300) {
        options.learn();
        return { response, isLowered: Number(sent.maxTokens) < Number(call.maxTokens) };
      }
      const failure = await readFailure(response, format);
      if (++refusals > MAX_REFUSALS) throw failure.error;
      const option = options.refuse(failure, sent, used);
      if (option === undefined) throw failure.error;
      refused = { option, body, error: failure.error };
    }
  }

  return { name: entry.name, ask: (call) => new VendorStream(call, open, entry.name, format, learned) };
}

/**
 * Fewest tokens without text that are thinking for certain. Servers hold back the tokens of an unfinished character,
 * and an emoji can have a dozen.
 */
const MIN_HIDDEN = 16;

type Open = (call: ModelCall) => Promise<Opened>;

interface Opened {
  readonly response: HttpResponse;
  /** Whether less output was asked for than the call may have, because the model takes no more. */
  readonly isLowered: boolean;
}

/**
 * The pieces of one completion. A hand-written iterator, because it is cheaper than a generator and every piece of
 * every model passes through it.
 */
class VendorStream implements Pieces {
  /** Undefined once text has arrived, because the call is not repeated after that. */
  #call: ModelCall | undefined;
  readonly #open: Open;
  readonly #model: string;
  readonly #format: WireFormat;
  readonly #learned: Learned;
  readonly #unopened: Unopened;
  readonly #mayThink: boolean;
  /** Whether the call was sent with room to think. */
  #hasRoom: boolean;
  #response: HttpResponse | undefined;
  #isLowered = false;
  /** Whether the body has begun and is a stream. */
  #isStream = false;
  #into: Collector;
  /** Undefined before the first part of a stream. */
  #events: SseParser | undefined;
  #failure: { error: unknown } | undefined;
  #isDone = false;
  #areCallsSent = false;

  constructor(call: ModelCall, open: Open, model: string, format: WireFormat, learned: Learned) {
    this.#call = call;
    this.#open = open;
    this.#model = model;
    this.#format = format;
    this.#learned = learned;
    this.#hasRoom = learned.thinks !== "no";
    this.#mayThink = call.reasoning !== "none";
    this.#unopened = unopenedIn(learned, call);
    this.#into = new Collector(takesCalls(call), this.#unopened);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): NextPiece | Promise<NextPiece> {
    if (this.#isDone) return NO_PART;
    if (this.#failure) return this.#advance();
    if (this.#into.isWhole) return this.#end();
    if (!this.#isStream || !this.#response) return this.#advance();
    // While the vendor is silent, an asynchronous function would hold 0.3 KB.
    const reading = this.#response.read();
    return reading instanceof Promise ? reading.then(this.#read, this.#fail) : this.#read(reading);
  }

  /**
   * Sends the call and reads the beginning of the body, which shows what it is, whatever was asked for and its content
   * type says: JSON is a whole completion or an error, anything else a stream.
   */
  async #advance(): Promise<NextPiece> {
    try {
      if (this.#failure) throw this.#failure.error;
      if (!this.#response && this.#call)
        ({ response: this.#response, isLowered: this.#isLowered } = await this.#open(this.#call));
      const reading = this.#response?.read();
      const first = reading instanceof Promise ? await reading : reading;
      // Removes a byte order mark too. Some servers send line feeds while the model works.
      const body = first?.trimStart();
      if (body === "") return { done: false, value: IDLE };
      if (body?.[0] !== "{" && body?.[0] !== "[") {
        this.#isStream = true;
        return this.#read(body);
      }
      const whole = this.#wholeBody(body);
      this.#format.readWhole(whole instanceof Promise ? await whole : whole, this.#into);
      return { done: false, value: this.#piece() };
    } catch (error) {
      return this.#fail(error);
    }
  }

  return(): NextPiece {
    this.#leave();
    return NO_PART;
  }

  readonly #read = (chunk: string | undefined): NextPiece => {
    try {
      this.#events ??= new SseParser((data) => this.#readEvent(data));
      if (chunk === undefined) this.#events.end();
      else this.#events.push(chunk);
      if (chunk === undefined && !this.#into.isWhole) throw cutOff();
    } catch (error) {
      // Text before a broken event is delivered first. A failure after the end reason is ignored.
      if (this.#into.isFinished) this.#into.isWhole = true;
      else if (!this.#into.isWhole) this.#failure = { error };
    }
    const piece = this.#piece();
    const isIdle = piece === PROGRESS && chunk !== undefined && COMMENTS.test(chunk);
    return { done: false, value: isIdle ? IDLE : piece };
  };

  readonly #fail = (error: unknown): NextPiece => {
    if (error instanceof ModelError && this.#into.isFinished) {
      this.#into.isWhole = true;
      return { done: false, value: this.#piece() };
    }
    this.#leave();
    throw error;
  };

  /** Reads a body to its end. Usually it has arrived. */
  #wholeBody(read: string): string | Promise<string> {
    let body = read;
    for (;;) {
      const chunk = this.#response?.read();
      if (chunk === undefined) return body;
      if (chunk instanceof Promise)
        return chunk.then((late) => (late === undefined ? body : this.#wholeBody(body + late)));
      body += chunk;
    }
  }

  #piece(): Piece {
    const text = this.#into.take();
    if (text === "") return PROGRESS;
    this.#call = undefined;
    return { type: "text", text };
  }

  #end(): NextPiece {
    this.#response?.finish();
    const { reason, usage, version, calls } = this.#into;
    if (calls.length > 0 && !this.#areCallsSent) {
      this.#areCallsSent = true;
      this.#call = undefined;
      return { done: false, value: { type: "calls", calls } };
    }
    this.#learnMarks();
    // Tokens without text are thinking, also where the vendor does not report it.
    const isStarved = this.#call !== undefined && reason === "length";
    this.#learnThinking(isStarved);
    if (isStarved && !this.#hasRoom && this.#call?.maxTokens !== undefined) {
      // Repeats the call, now with room to think.
      this.#hasRoom = true;
      this.#response = undefined;
      this.#isStream = false;
      this.#into = new Collector(this.#into.takesCalls, this.#unopened);
      this.#events = undefined;
      return { done: false, value: usage ? { type: "progress", usage } : PROGRESS };
    }
    this.#isDone = true;
    const named = version === undefined ? {} : { version };
    const limit = reason === "length" && this.#isLowered ? { isOwnLimit: true as const } : {};
    return { done: false, value: { type: "end", reason, ...limit, usage, model: this.#model, ...named } };
  }

  /**
   * Each whole answer with text of a model that leaves out the first mark has the second one, so an answer without it
   * shows that this is none.
   */
  #learnMarks(): void {
    const { isUnopened, reason, calls } = this.#into;
    const learned = this.#learned;
    if (this.#unopened === "no" || learned.unopened === "no") return;
    if (isUnopened) learned.unopened = "yes";
    else if (!this.#call && calls.length === 0 && (reason === "stop" || reason === "unknown")) learned.unopened = "no";
  }

  /**
   * Thinking that the vendor reports, or hides, is known for good. The prompt of one caller may ask any model to write
   * what looks like thinking, so the next text without it undoes that.
   */
  #learnThinking(isStarved: boolean): void {
    const { thinks, isMarked, hasText, takesCalls, calls, usage } = this.#into;
    const learned = this.#learned;
    const written = usage?.outputTokens || (this.#call?.maxTokens ?? Number.POSITIVE_INFINITY);
    // A call of a tool may have been cut off before its name, or a text within its first character.
    const isHidden = isStarved && !hasText && !takesCalls && written >= MIN_HIDDEN;
    if (thinks || isHidden) learned.thinks = "yes";
    else if (learned.thinks === "yes") return;
    else if (isMarked || isStarved) learned.thinks = "perhaps";
    else if (this.#mayThink && !this.#call && calls.length === 0) learned.thinks = "no";
  }

  #readEvent(data: string): void {
    if (!this.#into.isWhole) this.#format.readEvent(data, this.#into);
  }

  #leave(): void {
    this.#isDone = true;
    this.#response?.[Symbol.dispose]();
  }
}

/** Where the calls of a model with a vendor go. Split in advance, because making a URL for each call takes 3 µs. */
export function baseAddress(entry: ModelEntry): { origin: string; path: string } {
  const { vendor, baseUrl } = entry;
  const { base } = formatOf(entry);
  // An OpenAI-compatible server without a configured address is a local Ollama.
  const host = vendor === "openai-compatible" ? "http://127.0.0.1:11434" : base.host;
  const address = baseUrl ?? host;
  const { origin, pathname } = new URL(address);
  return { origin, path: pathname === "/" ? base.path : pathname };
}
