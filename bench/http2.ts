import { type ClientHttp2Session, type ClientHttp2Stream, connect, type OutgoingHttpHeaders } from "node:http2";
import type { Connection, Target } from "./load.ts";

/** A POST request over HTTP/2 without TLS, and what is a correct response to it. */
export interface Http2Request {
  port: number;
  path: string;
  headers: OutgoingHttpHeaders;
  body: Buffer;
  /** Whether the response must end with the trailer `grpc-status: 0`. */
  grpc: boolean;
  /** Makes a function that counts the tokens in the received bytes of one stream. Undefined for unary requests. */
  createCounter?: () => (bytes: Buffer) => number;
  /** Checks a complete body. @returns what is wrong; undefined if the body is correct */
  check(body: Buffer): string | undefined;
}

/** Connections that carry all concurrent requests, as those of a few internal clients do. */
export const SESSIONS = 8;
/** Longest time without a byte within a response, in milliseconds. */
const IDLE_MS = 10_000;

export function http2Target(request: Http2Request): Target {
  return {
    label: `${request.path} over HTTP/2 on port ${request.port}`,
    async open(count, onTokens) {
      const sessions = await Promise.all(Array.from({ length: SESSIONS }, () => openSession(request.port)));
      return Array.from({ length: count }, (_, i): Connection => {
        const session = sessions[i % SESSIONS] as ClientHttp2Session;
        return {
          exchange: (readBody) => exchange(session, request, readBody, onTokens),
          close: () => session.close(),
        };
      });
    },
  };
}

function openSession(port: number): Promise<ClientHttp2Session> {
  return new Promise((resolve, reject) => {
    const session = connect(`http://127.0.0.1:${port}`);
    // An error after the connection was made also ends its requests, which report it.
    session.on("error", reject);
    session.on("connect", () => resolve(session));
  });
}

function exchange(
  session: ClientHttp2Session,
  request: Http2Request,
  readBody: boolean,
  onTokens: (count: number) => void,
): Promise<void> {
  const countTokens = request.createCounter?.();
  return new Promise((resolve, reject) => {
    const stream: ClientHttp2Stream = session.request({ ":method": "POST", ":path": request.path, ...request.headers });
    const parts: Buffer[] = [];
    let status: unknown;
    let grpcStatus: unknown;
    stream.setTimeout(IDLE_MS, () => stream.destroy(new Error(`Nothing arrived for ${IDLE_MS / 1000} s.`)));
    stream.on("response", (headers) => {
      status = headers[":status"];
      grpcStatus = headers["grpc-status"];
    });
    stream.on("trailers", (trailers) => {
      grpcStatus = trailers["grpc-status"];
    });
    stream.on("data", (data: Buffer) => {
      if (countTokens) onTokens(countTokens(data));
      parts.push(data);
    });
    stream.on("error", reject);
    stream.on("close", () => {
      const body = Buffer.concat(parts);
      const complete = status === 200 && (!request.grpc || grpcStatus === "0");
      const wrong = complete
        ? readBody && request.check(body)
        : `The response has status ${status}, gRPC status ${grpcStatus}: ${JSON.stringify(body.toString())}.`;
      if (wrong) reject(new Error(wrong));
      else resolve();
    });
    stream.end(request.body);
  });
}
