import type { DescMessage, DescService, MessageShape } from "@bufbuild/protobuf";
import type { Actor } from "../accounts/audit.ts";

/** What a service of `chorus.admin.v1` does for whoever holds a token: one function for each of its methods. All of them throw Failure. */
export type Admin<S extends DescService> = {
  [M in keyof S["method"]]: S["method"][M] extends {
    input: infer I extends DescMessage;
    output: infer O extends DescMessage;
  }
    ? (request: MessageShape<I>, actor: Actor) => Promise<MessageShape<O>>
    : never;
};
