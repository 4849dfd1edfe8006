import { once } from "node:events";
import { connect } from "node:http2";
import type { Lifetime } from "./lifetime.ts";

/** Puts a message into an envelope of gRPC, or of a Connect stream. */
export function envelope(message: string | Uint8Array, flags = 0): Buffer {
  const bytes = Buffer.from(message);
  const prefix = Buffer.from([flags, 0, 0, 0, 0]);
  prefix.writeUInt32BE(bytes.length, 1);
  return Buffer.concat([prefix, bytes]);
}

/** Calls a unary or server-streaming method over gRPC. */
export async function grpcCall(
  t: Lifetime,
  url: string,
  path: string,
  headers: Record<string, string>,
  body: Buffer,
): Promise<{ headers: Record<string, unknown>; body: Buffer; trailers: Record<string, unknown> }> {
  const session = connect(url);
  t.onTestFinished(() => session.destroy());
  const type = { "content-type": "application/grpc", te: "trailers" };
  const stream = session.request({ ":method": "POST", ":path": path, ...type, ...headers });
  stream.end(body);
  const chunks: Buffer[] = [];
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  const [[received], [trailers]] = await Promise.all([once(stream, "response"), once(stream, "trailers")]);
  return { headers: received, body: Buffer.concat(chunks), trailers };
}
