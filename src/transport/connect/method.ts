import {
  type DescMethod,
  type DescService,
  type Message,
  type MessageShape,
  toBinary,
  toJsonString,
} from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import {
  type GenerateRequest,
  GenerateRequestSchema,
  GenerationService,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { ReadRequest } from "../../service/read-request.ts";
import { MAX_BODY, MAX_SMALL_BODY } from "../call/body-budget.ts";
import { type MethodRule, methodRules } from "../call/methods.ts";
import type { Call } from "./call.ts";
import type { MessageStream } from "./stream.ts";

/** What a handler gets: the message, or for a large prompt what a thread has read. */
type RequestOf<M> = M extends GenerateRequest ? M | ReadRequest : M;

/** One function for each method of a service.  */
export type Handlers<S extends DescService> = {
  [M in keyof S["method"]]: (
    request: RequestOf<MessageShape<S["method"][M]["input"]>>,
    call: Call,
  ) => S["method"][M]["methodKind"] extends "unary" ? Promise<MessageShape<S["method"][M]["output"]>> : MessageStream;
};

/** A method of Chorus, as it is served. */
export interface Method {
  readonly desc: DescMethod;
  readonly rule: MethodRule;
  /** Name of the span of a call. */
  readonly name: string;
  /** Whether Connect's GET requests are allowed. */
  readonly isReadOnly: boolean;
  /** Whether the response has notices about unknown members of JSON. The other methods refuse such members. */
  readonly noticesUnknown: boolean;
  /** Largest request, in bytes. */
  readonly maxBytes: number;
  run(request: Message | ReadRequest, call: Call): Promise<Message> | MessageStream;
}

/** @returns the methods of a service by their paths */
export function methodsOf<S extends DescService>(service: S, handlers: Handlers<S>): Array<[string, Method]> {
  const runs = handlers as Record<string, Method["run"]>;
  return [...methodRules([service])].map(([desc, rule]) => {
    const name = `${service.typeName}/${desc.name}`;
    const run = runs[desc.localName];
    if (!run) throw new TypeError(`${name} has no handler.`);
    const isReadOnly = desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const maxBytes = service.typeName === GenerationService.typeName ? MAX_BODY : MAX_SMALL_BODY;
    const noticesUnknown = desc.input === GenerateRequestSchema;
    return [`/${name}`, { desc, rule, name, isReadOnly, noticesUnknown, maxBytes, run }];
  });
}

export function serialize({ output }: DescMethod, message: Message, json: boolean): Uint8Array {
  return json ? Buffer.from(toJsonString(output, message)) : toBinary(output, message);
}
