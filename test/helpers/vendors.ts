import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import { WIRES, type Wire } from "./vendor-wire.ts";

export type VendorKind = "openai" | "anthropic" | "google";

/** A wire format. `responses` is another one of OpenAI's. */
export type WireKind = VendorKind | "responses";

/** One scripted answer. Without any field the whole text "Hello from openai." (or the other vendor) comes at once. */
export interface Reply {
  /** The answer; of a list, each item is one frame of a stream. */
  text?: string | readonly string[];
  /** Calls of tools after the text, whose arguments are JSON text. Without `text`, there is none. */
  calls?: readonly { readonly name: string; readonly arguments: string }[];
  /** Thoughts before the answer (all but openai). */
  thinking?: string;
  /** `stop`, `length`, `content-filter`, or a word of the vendor's own. */
  finish?: string;
  /** Normalised: input includes cached tokens, output includes thoughts. Default 10 and 5. Null: none is reported. */
  usage?: { input?: number; cached?: number; cacheWrite?: number; output?: number; thoughts?: number } | null;

  /** Default 200. From 400 on, `error` is the body, in the vendor's format. */
  status?: number;
  error?: { message?: string; type?: string; param?: string; code?: string; details?: unknown[] };
  headers?: Record<string, string>;
  /** Body in place of the vendor's format, for nonsense of any kind or one that is written once for many calls. */
  raw?: string | Buffer;

  /** What the vendor says has answered. Default `scripted`. */
  version?: string;

  /** Delays in milliseconds: before the headers, between headers and body, between pieces of text. */
  headersMs?: number;
  firstMs?: number;
  betweenMs?: number;
  /** A stream sends its second piece of text, and what follows, once this is resolved. */
  goOn?: Promise<unknown>;
  /** Cuts the body's bytes into chunks of this many, or at these offsets, each sent on its own. */
  split?: number | readonly number[];

  /**
   * How it ends. `whole` (default) sends everything; `silent` never sends headers. The others end a stream after
   * `after` pieces of text and a unary body in the middle: `hang` sends nothing more; `reset` breaks the connection;
   * `cut` ends cleanly without the terminal frame; `error` sends an error frame; `garbage` sends a frame that is not
   * JSON.
   */
  end?: "whole" | "silent" | "hang" | "reset" | "cut" | "error" | "garbage";
  /** Bytes after the terminal frame of a stream, and what then happens to the connection. */
  trailing?: string;
  afterwards?: "hang" | "reset";
  /** Pieces of text that a stream delivers before `end`. Default all. */
  after?: number;
}

/** What a vendor does with a call: a reply, or a function that makes one. */
export type Script = Reply | ((call: VendorCall) => Reply | Promise<Reply>);

/** One request as the vendor received it. */
export interface VendorCall {
  /** With the query. */
  path: string;
  headers: IncomingHttpHeaders;
  /** The body's text as it came. */
  body: string;
  json: Record<string, unknown>;
  streamed: boolean;
  /** `answered` once the whole reply is out, `aborted` once the caller has closed the connection before that. */
  ended: Promise<"answered" | "aborted">;
}

export interface ScriptedVendor {
  kind: WireKind;
  /** Address without a path, such as http://127.0.0.1:40123. */
  url: string;
  /** All requests so far. */
  calls: VendorCall[];
  /** Scripts for the next calls, one each, before the standing one holds again. */
  reply(...scripts: Script[]): void;
  /** Changes the standing script. */
  always(script: Script): void;
  /** Forgets all calls and scripts but the one that it was started with. */
  reset(): void;
  /** Connections that are open now. */
  readonly connections: number;
  /** An entry of the catalogue that leads here. Default: tier fast, a plain model that takes every option. */
  entry(overrides?: Partial<ModelEntry>): ModelEntry;
  /** Environment that makes a service use this vendor. */
  env: Record<string, string>;
  close(): Promise<void>;
}

const MODELS = {
  ...{ openai: "gpt-4o", responses: "gpt-5.4" },
  ...{ anthropic: "claude-haiku-4-5", google: "gemini-2.5-flash" },
};
const ENV_NAMES = { openai: "OPENAI", responses: "OPENAI", anthropic: "ANTHROPIC", google: "GEMINI" };
const KEY = "vendor-secret";

/** The members of an entry of the catalogue that make a model speak a wire format. */
export function spoken(kind: WireKind): Pick<ModelEntry, "vendor" | "api"> {
  return kind === "responses" ? { vendor: "openai", api: kind } : { vendor: kind };
}

/** Starts an HTTP server that speaks a vendor's wire format, whole and streamed, and does what the scripts say. */
export async function startVendor(kind: WireKind, script: Script = {}): Promise<ScriptedVendor> {
  const wire = WIRES[kind];
  const calls: VendorCall[] = [];
  const queue: Script[] = [];
  const closing = new AbortController();
  let standing = script;
  let connections = 0;

  // A connection that ends by itself, as node's do after 5 s, would surprise a test on a slow machine.
  const server = createServer({ keepAliveTimeout: 300_000 }, async (request, response) => {
    response.on("error", () => {});
    let body = "";
    request.setEncoding("utf8");
    try {
      for await (const chunk of request) body += chunk;
    } catch {
      return;
    }
    const json = body === "" ? {} : JSON.parse(body);
    const path = request.url ?? "";
    const ended = new Promise<"answered" | "aborted">((resolve) => {
      response.on("close", () => resolve(response.writableFinished ? "answered" : "aborted"));
    });
    const call = { path, headers: request.headers, body, json, streamed: wire.isStream(path, json), ended };
    calls.push(call);
    const next = queue.shift() ?? standing;
    const reply = wire.path.test(path) ? (typeof next === "function" ? await next(call) : next) : { status: 404 };
    try {
      await play(wire, kind, call, reply, response, closing.signal);
    } catch {
      // The caller has gone, or the server closes.
      response.destroy();
    }
  });
  server.on("connection", (socket) => {
    connections++;
    socket.on("close", () => connections--);
    socket.on("error", () => {});
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const catalogue = kind === "responses" ? await writeCatalogue(kind) : undefined;

  return {
    kind,
    url,
    calls,
    reply: (...scripts) => void queue.push(...scripts),
    always(next) {
      standing = next;
    },
    reset() {
      standing = script;
      calls.length = queue.length = 0;
    },
    get connections() {
      return connections;
    },
    entry: (overrides = {}) => ({
      name: `${kind}-fast`,
      ...spoken(kind),
      model: MODELS[kind],
      tier: "fast",
      baseUrl: url,
      apiKey: KEY,
      images: false,
      jsonSchema: true,
      ...overrides,
    }),
    env: {
      ...{ [`${ENV_NAMES[kind]}_API_KEY`]: KEY, [`${ENV_NAMES[kind]}_BASE_URL`]: url },
      ...(catalogue === undefined ? {} : { CHORUS_MODELS: catalogue }),
    },
    close: async () => {
      closing.abort();
      const closed = new Promise((resolve) => server.close(resolve));
      server.closeAllConnections();
      await closed;
      if (catalogue !== undefined) await rm(dirname(catalogue), { recursive: true, force: true });
    },
  };
}

/** Writes a catalogue with a fast and a strong model that speak a wire format. @returns its path */
async function writeCatalogue(kind: WireKind): Promise<string> {
  const path = join(await mkdtemp(join(tmpdir(), "chorus-vendor-")), "models.json");
  const models = ["fast", "strong"].map((tier) => ({
    ...spoken(kind),
    ...{ name: `${kind}-${tier}`, model: MODELS[kind], tier, images: true },
  }));
  await writeFile(path, JSON.stringify({ models }));
  return path;
}

async function play(
  wire: Wire,
  kind: WireKind,
  call: VendorCall,
  reply: Reply,
  response: ServerResponse,
  closing: AbortSignal,
) {
  const { status = 200, end = "whole", headersMs = 0, firstMs = 0, betweenMs = 0 } = reply;
  const gone = new AbortController();
  const leave = () => gone.abort();
  response.on("close", leave);
  closing.addEventListener("abort", leave, { once: true });
  const pause = (ms: number) => sleep(ms, undefined, { signal: gone.signal });
  const forever = () => pause(2 ** 31 - 1);
  const send = async (body: string | Buffer) => {
    for (const chunk of pieces(typeof body === "string" ? Buffer.from(body) : body, reply.split)) {
      await new Promise<void>((resolve) => response.write(chunk, () => resolve()));
      if (reply.split !== undefined) await new Promise(setImmediate);
    }
  };
  try {
    if (end === "silent") await forever();
    if (headersMs > 0) await pause(headersMs);
    const usual = reply.calls ? [] : [`Hello from ${kind}.`];
    const list = typeof reply.text === "string" ? [reply.text] : (reply.text ?? usual);
    const streamed = call.streamed && status < 400;
    response.writeHead(status, {
      "content-type": streamed ? "text/event-stream" : "application/json",
      ...reply.headers,
    });
    response.flushHeaders();
    if (firstMs > 0) await pause(firstMs);

    if (reply.raw !== undefined) await send(reply.raw);
    else if (streamed) {
      const { before, text, after } = wire.frames(list, reply, toolOf(call));
      const delivered = end === "whole" ? text : text.slice(0, reply.after ?? text.length);
      if (betweenMs > 0 || reply.goOn) {
        await send(before.join(""));
        for (const [i, frame] of delivered.entries()) {
          if (i === 1) await reply.goOn;
          if (i > 0 && betweenMs > 0) await pause(betweenMs);
          await send(frame);
        }
      } else await send([...before, ...delivered].join(""));
      if (end === "whole") await send(after.join("") + (reply.trailing ?? ""));
      if (end === "error") await send(wire.errorFrame);
      if (end === "garbage") await send("data: {no json\n\n");
    } else {
      const body =
        status < 400
          ? wire.whole(list.join(""), reply, toolOf(call))
          : JSON.stringify(wire.error(status, reply.error ?? {}));
      await send(end === "whole" ? body : body.slice(0, body.length / 2));
    }
    if (end === "hang" || reply.afterwards === "hang") await forever();
    if (end === "reset" || reply.afterwards === "reset") {
      // Lets what was written arrive before the connection breaks.
      await pause(10);
      response.socket?.resetAndDestroy();
    } else response.end();
  } finally {
    closing.removeEventListener("abort", leave);
  }
}

/** Name of the tool that the caller offers. */
function toolOf({ json }: VendorCall): string | undefined {
  const [tool] = Array.isArray(json.tools) ? json.tools : [];
  // The caller's own tools take no answer.
  return tool?.name === "answer" ? tool.name : undefined;
}

function pieces(bytes: Buffer, split: Reply["split"]): Buffer[] {
  if (split === undefined) return [bytes];
  const offsets =
    typeof split === "number"
      ? Array.from({ length: Math.ceil(bytes.length / split) - 1 }, (_, i) => (i + 1) * split)
      : split;
  const starts = [0, ...offsets.filter((offset) => offset > 0 && offset < bytes.length)];
  return starts.map((start, i) => bytes.subarray(start, starts[i + 1]));
}
