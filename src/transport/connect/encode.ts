import type { OutgoingHttpHeaders } from "node:http";
import { type DescMethod, type Message, toBinary, toJsonString } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, endStreamToJson, errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { trailerSerialize } from "@connectrpc/connect/protocol-grpc-web";
import { PREFIX_BYTES, type Reply } from "../call/format.ts";

/** How one of the RPC protocols writes a call, in JSON or in protobuf's binary format. */
export interface Wire {
  readonly protocol: "connect" | "grpc";
  readonly json: boolean;
  /** Whether each message has a prefix: a byte of flags and four bytes of length. */
  readonly enveloped: boolean;
  readonly contentType: string;
  /** Request header that names the compression of messages, and response header that names what is supported. */
  readonly encodingHeader: string;
  readonly acceptHeader: string;
  /**
   * Ends a response.
   * @param message the only message of a unary method
   * @param error what ended the call, if anything; its metadata goes to the headers or trailers
   */
  reply(message?: Uint8Array, error?: ConnectError): Reply;
}

/** Flags of the envelope that ends a response, of Connect's streams and of gRPC-Web. */
const END_STREAM = 0x02;
const TRAILERS = 0x80;

const GRPC_OK: OutgoingHttpHeaders = { "grpc-status": "0" };
const NOTHING = Buffer.alloc(0);
const CONNECT_END = envelope(Buffer.from("{}"), END_STREAM);
const GRPC_WEB_END = envelope(Buffer.from("grpc-status: 0\r\n"), TRAILERS);

export function serialize({ output }: DescMethod, message: Message, json: boolean): Uint8Array {
  return json ? Buffer.from(toJsonString(output, message)) : toBinary(output, message);
}

export function envelope(message: Uint8Array, flags = 0): Buffer {
  const bytes = Buffer.allocUnsafe(PREFIX_BYTES + message.length);
  bytes[0] = flags;
  bytes.writeUInt32BE(message.length, 1);
  bytes.set(message, PREFIX_BYTES);
  return bytes;
}

export function connectUnary(json: boolean): Wire {
  const contentType = json ? "application/json" : "application/proto";
  return {
    protocol: "connect",
    json,
    enveloped: false,
    contentType,
    encodingHeader: "content-encoding",
    acceptHeader: "accept-encoding",
    reply(message = NOTHING, error) {
      if (!error) {
        const headers = ["content-type", contentType, "content-length", String(message.length)];
        return { status: 200, headers, body: asBuffer(message) };
      }
      const body = asBuffer(errorToJsonBytes(error, undefined));
      const headers = ["content-type", "application/json", "content-length", String(body.length), ...metadataOf(error)];
      return { status: codeToHttpStatus(error.code), headers, body };
    },
  };
}

function connectStream(json: boolean): Wire {
  const end = (error: ConnectError) =>
    envelope(Buffer.from(JSON.stringify(endStreamToJson(new Headers(), error, undefined))), END_STREAM);
  return enveloped("connect", "connect", json, (error) => (error ? end(error) : CONNECT_END));
}

function grpcWeb(json: boolean): Wire {
  const end = (error: ConnectError) => envelope(trailerSerialize(statusOf(error)), TRAILERS);
  return enveloped("grpc", "grpc-web", json, (error) => (error ? end(error) : GRPC_WEB_END));
}

function grpc(json: boolean): Wire {
  const trailers = (error?: ConnectError) => (error ? Object.fromEntries(statusOf(error)) : GRPC_OK);
  return enveloped("grpc", "grpc", json, () => NOTHING, trailers);
}

function statusOf(error: ConnectError): Headers {
  const trailers = setTrailerStatus(new Headers(), error);
  // Connect's function encodes spaces and punctuation too, which some clients show as they come.
  const message = error.rawMessage.replace(/[^\x20-\x24\x26-\x7e]+/g, encodeURIComponent);
  trailers.set("grpc-message", message);
  return trailers;
}

/** The wire of a protocol with envelopes. Its status is 200, because the end states the failure. */
function enveloped(
  protocol: Wire["protocol"],
  type: string,
  json: boolean,
  end: (error?: ConnectError) => Buffer,
  trailers?: (error?: ConnectError) => OutgoingHttpHeaders,
): Wire {
  const contentType = `application/${type}+${json ? "json" : "proto"}`;
  const headers = ["content-type", contentType];
  return {
    protocol,
    json,
    enveloped: true,
    contentType,
    encodingHeader: `${protocol === "connect" ? "connect-content" : protocol}-encoding`,
    acceptHeader: `${protocol}-accept-encoding`,
    reply(message, error) {
      const last = end(error);
      const body = message ? Buffer.concat([envelope(message), last]) : last;
      return { status: 200, headers, body, ...(trailers ? { trailers: trailers(error) } : {}) };
    },
  };
}

const UNARY = [connectUnary(true), connectUnary(false)];
const STREAM = [connectStream(true), connectStream(false)];
const GRPC = [grpc(true), grpc(false), grpcWeb(true), grpcWeb(false)];

const tables = {
  unary: tableOf([...UNARY, ...GRPC]),
  stream: tableOf([...STREAM, ...GRPC]),
};

/** @returns the wire of a content type; undefined for a type of no protocol */
export function wireOf(contentType: string | undefined, kind: keyof typeof tables): Wire | undefined {
  const table = tables[kind];
  const type = contentType ?? "";
  return table.get(type) ?? table.get(type.toLowerCase().replace(/; ?charset=utf-?8$/, ""));
}

function tableOf(wires: readonly Wire[]): ReadonlyMap<string, Wire> {
  const table = new Map(wires.map((wire) => [wire.contentType, wire]));
  for (const type of ["application/grpc", "application/grpc-web"]) {
    const wire = table.get(`${type}+proto`);
    if (wire) table.set(type, wire);
  }
  return table;
}

function metadataOf(error: ConnectError): string[] {
  return [...error.metadata].flat();
}

function asBuffer({ buffer, byteOffset, byteLength }: Uint8Array): Buffer {
  return Buffer.from(buffer, byteOffset, byteLength);
}
