import type { GenerateRequest } from "../../gen/chorus/v1/generation_pb.js";
import type { Config } from "../config/config.ts";
import type { Engine } from "../engine/answer.ts";
import type { Reader } from "../engine/attachments/reader.ts";
import { check } from "./check.ts";
import type { InFlight } from "./in-flight.ts";
import { readInput } from "./input.ts";
import type { ReadRequest } from "./read-request.ts";
import { type RequestContext, visibleError } from "./request-context.ts";

interface Parts {
  readonly engine: Engine;
  readonly reader: Reader;
  readonly inFlight: InFlight;
  readonly deadlines: Config["deadlines"];
}

/**
 * Counts the input tokens that a request would be charged for: its text, and the part of its files that a model would
 * read. Nothing is charged.
 * @throws Failure; CallerGone when `context.signal` aborted
 */
export async function countTokens(
  { engine, reader, inFlight, deadlines }: Parts,
  request: GenerateRequest | ReadRequest,
  context: RequestContext,
): Promise<number> {
  const running = inFlight.begin(context.signal);
  try {
    running.limit(deadlines.low);
    const { read } = check(request, context, false, engine.tokenizer.count);
    const { workspaceId } = context.caller;
    return (await readInput(engine, reader, read, undefined, workspaceId, running.signal)).inputTokens;
  } catch (error) {
    throw visibleError(error);
  } finally {
    running[Symbol.dispose]();
  }
}
