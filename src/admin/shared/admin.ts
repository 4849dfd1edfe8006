import type { DescMessage, DescService, MessageInitShape, MessageShape } from "@bufbuild/protobuf";
import type { Actor } from "./audit.ts";

/**
 * One function for each method of a service of `chorus.admin.v1`. Each takes the authenticated actor and throws
 * Failure.
 */
export type Admin<S extends DescService> = {
  [M in keyof S["method"]]: S["method"][M] extends {
    input: infer I extends DescMessage;
    output: infer O extends DescMessage;
  }
    ? (request: MessageShape<I>, actor: Actor) => Promise<MessageInitShape<O>>
    : never;
};
