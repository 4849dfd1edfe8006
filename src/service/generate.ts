import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  type GenerateRequest,
  type GenerateResponse,
  type StreamGenerateResponse_Done,
  StreamGenerateResponse_DoneSchema,
  UsageSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Admission, ModelCost } from "../admission/lease.ts";
import type { Config } from "../config/config.ts";
import { answer, type Engine, type EngineEvent, type Finish } from "../engine/answer.ts";
import type { Reader } from "../engine/attachments/reader.ts";
import type { DifficultyRater } from "../engine/difficulty/difficulty.ts";
import { searchWeb } from "../engine/grounding.ts";
import { createTrace, type ToldStep } from "../engine/trace.ts";
import { Failure, toFailure } from "../failure.ts";
import type { Search } from "../search/search.ts";
import type { Outcome } from "../terms.ts";
import { traced, tracedParts } from "../tracing.ts";
import type { Costs } from "./costs.ts";
import { idempotency } from "./idempotency.ts";
import type { InFlight } from "./in-flight.ts";
import { readInput } from "./input.ts";
import { chooseLevel } from "./level.ts";
import { CUT_SHORT, OFFLINE, searchNotices } from "./notices.ts";
import { CallerGone, CutShort, type GenerateEvent, type RequestContext } from "./request-context.ts";
import { finishReason, finishWord, fold, replay, stepMessage, structuredOf, traceMessage } from "./response.ts";
import { checkRequest, MAX_TOKENS } from "./validate-request.ts";

export interface Generation {
  /**
   * Answers a request. Nothing runs before the first event is asked for; leaving the iteration early ends the work at once and, for a
   * streamed call, charges what was taken. The charge is durable before `done` is yielded.
   * @throws Failure; CallerGone when `call.signal` aborted.
   */
  generate(request: GenerateRequest, call: RequestContext, streamed: boolean): AsyncGenerator<GenerateEvent>;
  /** The fold of `generate`: the whole answer in one piece. */
  generateWhole(request: GenerateRequest, call: RequestContext): Promise<GenerateResponse>;
}

export interface GenerationParts {
  engine: Engine;
  judge: DifficultyRater;
  /** Reads attached files. */
  reader: Reader;
  /** Undefined: no search of the web is configured. */
  search: Search | undefined;
  admission: Admission;
  /** Bounds and ends what runs. */
  work: InFlight;
  costs: Costs;
  deadlines: Config["deadlines"];
  levels: Config["levels"];
}

interface Settled {
  credits: number;
  outputTokens: number;
  spent: ModelCost & { models: number };
}

/** Makes the use case out of its parts. */
export function createGeneration(parts: GenerationParts): Generation {
  const { engine, judge, reader, search, admission, work, costs, deadlines, levels } = parts;
  return { generate, generateWhole };

  async function* generate(
    request: GenerateRequest,
    call: RequestContext,
    streamed: boolean,
  ): AsyncGenerator<GenerateEvent> {
    using running = work.begin(call.signal);
    const asked = checkRequest(request, streamed);
    const again = streamed ? undefined : call.idempotencyKey;
    const safe = again === undefined ? undefined : idempotency(call.caller.workspaceId, again, request);
    const { level, judgement, reasons } = chooseLevel(judge, levels, asked.effort, asked.conversation);
    running.limit(deadlines[level]);
    const endsAt = performance.now() + deadlines[level];
    const trace = asked.trace ? createTrace() : undefined;
    const input = await traced("input", () =>
      readInput(engine, reader, asked, trace, call.caller.workspaceId, running.signal),
    ).catch((error) => {
      throw error instanceof CutShort ? cutFailure(error) : error;
    });
    const { inputTokens } = input;
    const notices = [...call.notices, ...(engine.models.offline ? [OFFLINE] : []), ...input.notices];
    const id = `gen_${randomUUID().replaceAll("-", "")}`;

    const opened = await traced("admission", () =>
      admission.open({
        caller: call.caller,
        requestId: call.requestId,
        generationId: id,
        streamed,
        shape: asked.shape,
        effort: asked.effort,
        level,
        inputTokens,
        maxOutputTokens: asked.maxTokens ?? MAX_TOKENS,
        ...(safe ? { idempotency: { key: safe.key, body: safe.body } } : {}),
      }),
    );
    if ("replay" in opened) {
      if (safe) yield* replay(safe.open(opened.replay), call);
      return;
    }
    await using lease = opened;
    Object.assign(call.facts, { generationId: id, level });
    using cost = costs.begin(id);

    let delivered = "";
    let finish: Finish | undefined;
    let settlement: Promise<Settled> | undefined;
    try {
      // Many models take longer than a reader should wait for a sign of life.
      if (streamed && level === "high") yield { type: "open" };
      for (const step of trace?.steps ?? []) yield { type: "trace", step: stepMessage(step) };
      for await (const event of searchAndAnswer()) {
        if (event.type === "text") {
          yield { type: "delta", text: event.text };
          // Only now has the piece been taken.
          delivered += event.text;
        } else if (event.type === "step") {
          if (trace) yield { type: "trace", step: stepMessage(trace.add(event.step)) };
        } else finish = event;
      }
      if (call.signal.aborted) throw new CallerGone();
      yield { type: "done", done: await conclude() };
    } catch (error) {
      if (error instanceof CutShort && delivered !== "") {
        yield { type: "done", done: await conclude() };
        return;
      }
      const failure = error instanceof CutShort ? cutFailure(error) : error;
      if (!(failure instanceof CallerGone)) await settle(toFailure(failure).kind);
      throw failure;
    } finally {
      // Reached unsettled when the caller has gone: what it took of a stream is charged, of a unary answer it has nothing. A stream
      // that had been cut short by then, but was not taken to its end, stays free.
      await settle(running.signal.reason instanceof CutShort ? "cut_short" : "caller_gone");
    }

    async function* searchAndAnswer(): AsyncGenerator<EngineEvent | { type: "step"; step: ToldStep }> {
      let { conversation } = input;
      if (asked.webSearch) {
        const searched = yield* tracedParts(
          "search",
          searchWeb(search, conversation, asked.conversation, running.signal),
        );
        conversation = searched.conversation;
        notices.push(...searchNotices(searched));
        if (searched.outcome === "failed") call.facts.searchFailure = searched.error.message;
      }
      const { kind, difficulty } = judgement;
      const deadlineMs = Math.max(1, endsAt - performance.now());
      const question = {
        ...asked,
        conversation,
        level,
        kind,
        difficulty,
        inputTokens,
        streamed,
        deadlineMs,
        generation: id,
      };
      yield* tracedParts("plan", answer(engine, question, running.signal), { attributes: { "chorus.kind": kind } });
    }

    /** Settles the end of an answer that the caller has, or has in part, and says so. */
    async function conclude(): Promise<StreamGenerateResponse_Done> {
      const whole = finish !== undefined && finish.reason !== "cut";
      if (!whole) notices.push(CUT_SHORT);
      const done = ({ credits, outputTokens, spent }: Settled) =>
        create(StreamGenerateResponse_DoneSchema, {
          id,
          requestId: call.requestId,
          usage: create(UsageSchema, { inputTokens, outputTokens, cachedTokens: cached(), credits }),
          finishReason: finishReason(finish),
          notices,
          ...structuredOf(asked, finish),
          ...(trace ? { intelligenceTrace: traceMessage(trace, level, reasons, spent) } : {}),
        });
      const keep = whole && safe ? (settled: Settled) => safe.seal(fold(delivered, done(settled), call)) : undefined;
      return done(await settle(whole ? "ok" : "cut_short", keep));
    }

    /** The first end counts; later ones change nothing. */
    function settle(...end: Parameters<typeof settleOnce>): Promise<Settled> {
      settlement ??= traced("settlement", () => settleOnce(...end));
      return settlement;
    }

    async function settleOnce(outcome: Outcome, keep?: (settled: Settled) => Uint8Array): Promise<Settled> {
      const outputTokens = finish?.outputTokens ?? engine.tokenizer.count(delivered);
      const spent = await cost.sum();
      const { credits } = await lease.settle({
        outcome,
        outputTokens,
        cachedTokens: cached(),
        latencyMs: Math.round(performance.now() - call.startedAt),
        ...(outcome === "ok" || outcome === "cut_short" ? { finishReason: finishWord(finish) } : {}),
        ...(finish?.model ? { model: finish.model } : {}),
        cost: spent,
        ...(keep ? { response: (credits: number) => keep({ credits, outputTokens, spent }) } : {}),
      });
      Object.assign(call.facts, { outcome, inputTokens, outputTokens, cachedTokens: cached(), credits });
      return { credits, outputTokens, spent };
    }

    /** A vendor counts with its own tokenizer, so its figure may exceed ours. */
    function cached(): number {
      return Math.min(finish?.cachedTokens ?? 0, inputTokens);
    }
  }

  async function generateWhole(request: GenerateRequest, call: RequestContext): Promise<GenerateResponse> {
    let text = "";
    for await (const event of generate(request, call, false)) {
      if (event.type === "delta") text += event.text;
      else if (event.type === "done") return fold(text, event.done, call);
    }
    throw new Failure("internal");
  }
}

function cutFailure(cut: CutShort): Failure {
  return cut.why === "deadline" ? new Failure("timed_out") : new Failure("overloaded", { retryAfterMs: 1_000 });
}
