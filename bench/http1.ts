import { connect, type Socket } from "node:net";
import { countTokens } from "./answer.ts";
import { bodyBytes, frame } from "./framing.ts";
import type { Connection, Target } from "./load.ts";

/** A POST request over HTTP/1.1, and what is a correct response to it. */
export interface Http1Request {
  port: number;
  path: string;
  headers: Readonly<Record<string, string>>;
  body: string | Uint8Array;
  /** Text in the last bytes of every correct response body. */
  ending: string;
  /** Checks a complete body. @returns what is wrong; undefined if the body is correct */
  check(body: Buffer): string | undefined;
  /** Longest silence within a response, in milliseconds. 0: no limit. Default 10 s. */
  idleMs?: number;
}

const LAST_CHUNK = Buffer.from("0\r\n\r\n");
/** Bytes at the end of a response that must contain the ending. */
const TAIL_BYTES = 4096;

export function http1Target(request: Http1Request): Target {
  const bytes = requestBytes(request);
  return {
    label: `${request.path} on port ${request.port}`,
    open: (count, onTokens) =>
      Promise.all(Array.from({ length: count }, () => openConnection(request, bytes, onTokens))),
  };
}

function requestBytes({ port, path, headers, body }: Http1Request): Buffer {
  const lines = Object.entries({
    Host: `127.0.0.1:${port}`,
    "Content-Type": "application/json",
    "Content-Length": String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), Buffer.from(body)]);
}

/** Checks a response. @returns what is wrong; undefined if it is correct */
function fault(bytes: Buffer, request: Http1Request, readBody: boolean): string | undefined {
  if (bytes.toString("latin1", 9, 12) !== "200")
    return `The response is ${JSON.stringify(bytes.toString("utf8", 0, 600))}.`;
  if (!bytes.includes(request.ending, Math.max(0, bytes.length - TAIL_BYTES)))
    return `The response has a wrong ending: ${JSON.stringify(bytes.toString("utf8", bytes.length - 300))}.`;
  if (!readBody) return undefined;
  const found = frame(bytes);
  if (found?.end !== bytes.length) return "There are more bytes after the end of the response.";
  return request.check(bodyBytes(bytes, found));
}

function openConnection(
  request: Http1Request,
  requestBytes: Buffer,
  onTokens: (count: number) => void,
): Promise<Connection> {
  const { port, idleMs = 10_000 } = request;
  return new Promise((resolve, reject) => {
    const socket: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
    let parts: Buffer[] = [];
    let length = 0;
    /** Length of the response: 0 until its headers are complete, Infinity while chunks are missing. */
    let expected = 0;
    let waiting: PromiseWithResolvers<Buffer> | undefined;
    let failure: Error | undefined;

    const fail = (message: string) => {
      failure ??= new Error(message);
      socket.destroy();
      reject(failure);
      waiting?.reject(failure);
    };
    socket.setTimeout(idleMs, () => fail(`Nothing arrived for ${idleMs / 1000} s.`));
    socket.on("error", (error) => fail(`The connection failed: ${error.message}.`));
    socket.on("close", () => fail("The server closed the connection before the end of a response."));
    socket.on("connect", () =>
      resolve({
        async exchange(readBody) {
          if (failure) throw failure;
          waiting = Promise.withResolvers();
          socket.write(requestBytes);
          const wrong = fault(await waiting.promise, request, readBody);
          if (wrong) throw new Error(wrong);
        },
        close: () => socket.destroy(),
      }),
    );
    socket.on("data", (data: Buffer) => {
      onTokens(countTokens(data));
      parts.push(data);
      length += data.length;
      if (expected === Infinity ? !mayEndChunks(data) : length < expected) return;
      const bytes = parts.length === 1 ? data : Buffer.concat(parts, length);
      expected = frame(bytes)?.end ?? 0;
      if (expected === 0 || length < expected) return;
      parts = [];
      length = 0;
      expected = 0;
      waiting?.resolve(bytes);
    });
  });
}

/**
 * Whether a segment may be the last one of a chunked response. A cheap test, so that segments are concatenated only
 * once.
 */
function mayEndChunks(segment: Buffer): boolean {
  return segment.length < LAST_CHUNK.length || segment.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
}
