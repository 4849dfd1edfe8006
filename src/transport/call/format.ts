import type { OutgoingHttpHeaders } from "node:http";
import type { Message } from "@bufbuild/protobuf";
import type { Notice } from "../../../gen/chorus/v1/generation_pb.js";
import type { Failure } from "../../contract/failure.ts";
import type { GenerateEvent } from "../../generate/request-context.ts";
import type { FieldNames } from "./field-names.ts";
import type { UnknownMembers } from "./unknown-members.ts";

/** A whole response, or the end of a stream. */
export interface Reply {
  readonly status: number;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  readonly body: string | Buffer;
  readonly trailers?: OutgoingHttpHeaders;
}

export interface Decoded<M> extends Partial<Readonly<UnknownMembers>> {
  /** A large prompt is also checked and counted. */
  readonly request: M;
  /** What a request of another API asks for beyond the message. */
  readonly terms?: ForeignTerms;
}

/** What a request of another API asks for beyond a `GenerateRequest`. Each format adds what only itself reads. */
export interface ForeignTerms {
  /** Whether the response is a stream of server-sent events. */
  readonly isStream: boolean;
  /** Whether its pieces are sent as they come. JSON is sent when it is complete, because only then it is checked. */
  readonly streamed: boolean;
  /** The name of the model in the answer. */
  readonly model: string;
  /** Whether the request names another model. */
  readonly isOtherModel: boolean;
  /** Names for the failures of the request. */
  readonly names: FieldNames;
  /** What was taken otherwise than it was sent, or not at all. */
  readonly notices: readonly Notice[];
}

export interface Head {
  /** The caller's deadline from now, in milliseconds. */
  readonly timeoutMs?: number | undefined;
  /** The request, if it has no body. */
  readonly decoded?: Decoded<Message>;
}

/** How a body is written: as JSON of the public contract or of another API, as protobuf JSON, or as protobuf. */
export interface BodyForm {
  readonly name: "rest" | "openai" | "responses" | "anthropic" | "json" | "proto";
  /** Whether the body is a message with a prefix, as in gRPC. */
  readonly isWrapped: boolean;
}

/** Bytes of flags and length before a message that is wrapped. */
export const PREFIX_BYTES = 5;

/** How a stream of events is written. Its pieces are all strings, or all buffers. */
export interface EventFormat {
  /** Of the response: names and values in turn. */
  readonly headers: readonly string[];
  /** Sent after each time of silence. Undefined: nothing is sent. */
  readonly comment?: string;
  /** Returns what an event becomes; empty for an event that is not sent. */
  event(event: GenerateEvent): string | Buffer;
  /** Returns what ends the stream, with a failure or without. */
  end(requestId: string, failure?: Failure): Pick<Reply, "body" | "trailers">;
}

/** Headers of a response of server-sent events. */
export const SSE_HEADERS: readonly string[] = [
  ...["Content-Type", "text/event-stream"],
  ...["Cache-Control", "no-store"],
  ...["X-Accel-Buffering", "no"],
];

/** A comment of server-sent events, which clients ignore. */
export const COMMENT = ": \n\n";
