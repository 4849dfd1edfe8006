import { randomUUID } from "node:crypto";
import type { GenerateRequest, GenerateResponse } from "../../gen/chorus/v1/generation_pb.js";
import type { Admission, Lease } from "../admission/lease.ts";
import type { Config } from "../config/config.ts";
import type { Engine } from "../engine/answer.ts";
import type { Reader } from "../engine/attachments/reader.ts";
import type { DifficultyRater } from "../engine/difficulty/difficulty.ts";
import { createTrace } from "../engine/trace.ts";
import { Failure } from "../failure.ts";
import type { Search } from "../search/search.ts";
import { MAX_OUTPUT_TOKENS } from "../terms.ts";
import { traced } from "../tracing.ts";
import type { AdmittedRequest } from "./admitted-request.ts";
import type { Costs } from "./costs.ts";
import { deliver } from "./deliver.ts";
import { readIdempotencyKey } from "./idempotency.ts";
import type { InFlight } from "./in-flight.ts";
import { readInput } from "./input.ts";
import { chooseLevel } from "./level.ts";
import { OFFLINE } from "./notices.ts";
import { type GenerateEvent, type RequestContext, visibleError } from "./request-context.ts";
import { fold, replay } from "./response.ts";
import { createSettlement } from "./settle.ts";
import { checkRequest } from "./validate-request.ts";

export interface Generation {
  /**
   * Answers a request as a stream of events. The work starts when the first event is asked for. Leaving the iteration
   * early aborts the work and, for a stream, charges the text that was taken. The charge is durable before `done` is
   * yielded.
   * @throws Failure; CallerGone when `context.signal` aborted.
   */
  generate(request: GenerateRequest, context: RequestContext, streamed: boolean): AsyncGenerator<GenerateEvent>;
  /** Answers a request with one response, made from the events of `generate`. */
  generateWhole(request: GenerateRequest, context: RequestContext): Promise<GenerateResponse>;
}

export interface GenerationParts {
  engine: Engine;
  difficulty: DifficultyRater;
  /** Reads attached files. */
  reader: Reader;
  /** Undefined: no web search is configured. */
  search: Search | undefined;
  admission: Admission;
  inFlight: InFlight;
  costs: Costs;
  deadlines: Config["deadlines"];
  levels: Config["levels"];
}

export function createGeneration(parts: GenerationParts): Generation {
  return {
    generate: (request, context, streamed) => generate(parts, request, context, streamed),
    async generateWhole(request, context) {
      let text = "";
      for await (const event of generate(parts, request, context, false)) {
        if (event.type === "delta") text += event.text;
        else if (event.type === "done") return fold(text, event.done, context);
      }
      throw new Failure("internal");
    },
  };
}

/** The six steps of a request: check, level, input, lease, answer, settle. `deliver` does the last two. */
async function* generate(
  parts: GenerationParts,
  request: GenerateRequest,
  context: RequestContext,
  streamed: boolean,
): AsyncGenerator<GenerateEvent> {
  const { engine, admission, inFlight, costs, deadlines } = parts;
  using running = inFlight.begin(context.signal);

  const checked = checkRequest(request, streamed);
  const idempotency = streamed ? undefined : readIdempotencyKey(request, context);

  const choice = chooseLevel(parts.difficulty, parts.levels, checked.effort, checked.conversation);
  const deadlineMs = deadlines[choice.level];
  running.limit(deadlineMs);
  const endsAt = performance.now() + deadlineMs;

  const trace = checked.trace ? createTrace() : undefined;
  const owner = context.caller.workspaceId;
  const input = await traced("input", () =>
    readInput(engine, parts.reader, checked, trace, owner, running.signal),
  ).catch((error) => {
    throw visibleError(error);
  });

  const admitted: AdmittedRequest = {
    id: `gen_${randomUUID().replaceAll("-", "")}`,
    checked,
    context,
    streamed,
    choice,
    input,
    trace,
    idempotency,
    signal: running.signal,
    endsAt,
    notices: [...context.notices, ...(engine.models.offline ? [OFFLINE] : []), ...input.notices],
    delivered: "",
    finish: undefined,
  };
  const opened = await traced("admission", () => openLease(admission, admitted));
  if ("replay" in opened) {
    if (idempotency) yield* replay(idempotency.open(opened.replay), context);
    return;
  }
  await using lease = opened;
  Object.assign(context.facts, { generationId: admitted.id, level: choice.level });
  using cost = costs.begin(admitted.id);

  yield* deliver(parts, admitted, createSettlement(admitted, lease, cost, engine.tokenizer));
}

function openLease(admission: Admission, admitted: AdmittedRequest): Promise<Lease | { replay: Uint8Array }> {
  const { id, checked, context, streamed, choice, input, idempotency } = admitted;
  return admission.open({
    caller: context.caller,
    requestId: context.requestId,
    generationId: id,
    streamed,
    shape: checked.shape,
    effort: checked.effort,
    level: choice.level,
    inputTokens: input.inputTokens,
    maxOutputTokens: checked.maxTokens ?? MAX_OUTPUT_TOKENS,
    ...(idempotency ? { idempotency: { key: idempotency.key, body: idempotency.body } } : {}),
  });
}
