import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  Effort,
  FinishReason,
  type GenerateRequest,
  type GenerateResponse,
  GenerateResponseSchema,
  type IntelligenceTrace,
  IntelligenceTraceSchema,
  type Notice,
  NoticeSchema,
  type StreamGenerateResponse_Done,
  StreamGenerateResponse_DoneSchema,
  type TraceStep,
  TraceStepSchema,
  UsageSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Admission, Outcome } from "../admission/lease.ts";
import type { Config } from "../config.ts";
import { answer, type Engine, type Finish, type Step } from "../engine/answer.ts";
import { Failure, toFailure } from "../failure.ts";
import { type Call, CallerGone, CutShort, type Event } from "./call.ts";
import { type Checked, checkRequest, MAX_TOKENS } from "./check.ts";
import { idempotency } from "./idempotency.ts";
import { chooseLevel, type Level } from "./level.ts";
import type { Work } from "./work.ts";

export interface Generation {
  /**
   * Answers a request. Nothing runs before the first event is asked for; leaving the iteration early ends the work at once and, for a
   * streamed call, charges what was taken. The charge is durable before `done` is yielded.
   * @throws Failure; CallerGone when `call.signal` aborted.
   */
  generate(request: GenerateRequest, call: Call, streamed: boolean): AsyncGenerator<Event>;
  /** The fold of `generate`: the whole answer in one piece. */
  generateWhole(request: GenerateRequest, call: Call): Promise<GenerateResponse>;
}

interface Settled {
  credits: number;
  outputTokens: number;
}

/** Makes the use case out of its parts. `work` bounds and ends what runs. */
export function createGeneration(
  engine: Engine,
  admission: Admission,
  work: Work,
  deadlines: Config["deadlines"],
): Generation {
  return { generate, generateWhole };

  async function* generate(request: GenerateRequest, call: Call, streamed: boolean): AsyncGenerator<Event> {
    using running = work.begin(call.signal);
    const asked = checkRequest(request, streamed);
    const again = streamed ? undefined : call.idempotencyKey;
    const safe = again === undefined ? undefined : idempotency(call.caller.workspaceId, again, request);
    const inputTokens = await countInput(engine, asked);
    const { level, tier } = chooseLevel(asked, inputTokens);
    const notices = [...call.notices, ...ownNotices(request, engine.models.offline)];
    const id = `gen_${randomUUID().replaceAll("-", "")}`;
    const trace = startTrace(asked.trace, level);

    running.limit(deadlines[level]);
    const opened = await admission.open({
      caller: call.caller,
      requestId: call.requestId,
      generationId: id,
      streamed,
      shape: asked.shape,
      effort: effortWord(asked.effort),
      level,
      inputTokens,
      maxOutputTokens: asked.maxTokens ?? MAX_TOKENS,
      ...(safe ? { idempotency: { key: safe.key, body: safe.body } } : {}),
    });
    if ("replay" in opened) {
      if (safe) yield* replay(safe.open(opened.replay), call);
      return;
    }
    await using lease = opened;
    Object.assign(call.facts, { generationId: id, level });

    let delivered = "";
    let finish: Finish | undefined;
    let settlement: Promise<Settled> | undefined;
    const question = { ...asked, tier, streamed };
    try {
      for await (const event of answer(engine, question, running.signal)) {
        if (event.type === "text") {
          yield { type: "delta", text: event.text };
          // Only now has the piece been taken.
          delivered += event.text;
        } else if (event.type === "step") {
          const step = trace?.add(event.step);
          if (step) yield { type: "trace", step };
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
      if (!(failure instanceof CallerGone)) await settle(toFailure(failure).kind, false);
      throw failure;
    } finally {
      // Reached unsettled when the caller has gone: what it took of a stream is charged, of a unary answer it has nothing. A stream
      // that had been cut short by then, but was not taken to its end, stays free.
      if (running.signal.reason instanceof CutShort) await settle("cut_short", false);
      else await settle("caller_gone", streamed);
    }

    /** Settles the end of an answer that the caller has, or has in part, and says so. */
    async function conclude(): Promise<StreamGenerateResponse_Done> {
      const whole = finish !== undefined && finish.reason !== "cut";
      if (!whole) notices.push(notice("cut_short", "The service cut the answer short. It is not charged."));
      const done = ({ credits, outputTokens }: Settled) =>
        create(StreamGenerateResponse_DoneSchema, {
          id,
          requestId: call.requestId,
          usage: create(UsageSchema, { inputTokens, outputTokens, cachedTokens: cached(), credits }),
          finishReason: finishWord() === "stop" ? FinishReason.STOP : FinishReason.LENGTH,
          notices,
          ...structuredOf(asked, finish),
          ...(trace ? { intelligenceTrace: trace.whole() } : {}),
        });
      const keep = whole && safe ? (settled: Settled) => safe.seal(fold(delivered, done(settled), call)) : undefined;
      return done(await settle(whole ? "ok" : "cut_short", whole, keep));
    }

    /** The first end counts; later ones change nothing. */
    function settle(...end: Parameters<typeof settleOnce>): Promise<Settled> {
      settlement ??= settleOnce(...end);
      return settlement;
    }

    async function settleOnce(
      outcome: Outcome,
      charged: boolean,
      keep?: (settled: Settled) => Uint8Array,
    ): Promise<Settled> {
      const outputTokens = finish?.outputTokens ?? engine.tokenizer.count(delivered);
      const { credits } = await lease.settle({
        outcome,
        charged,
        outputTokens,
        cachedTokens: cached(),
        latencyMs: Math.round(performance.now() - call.startedAt),
        ...(outcome === "ok" || outcome === "cut_short" ? { finishReason: finishWord() } : {}),
        ...(finish?.model ? { model: finish.model } : {}),
        ...(keep ? { response: (credits: number) => keep({ credits, outputTokens }) } : {}),
      });
      Object.assign(call.facts, { outcome, inputTokens, outputTokens, cachedTokens: cached(), credits });
      return { credits, outputTokens };
    }

    function finishWord(): "stop" | "length" {
      return finish?.reason === "stop" ? "stop" : "length";
    }

    /** A vendor counts with its own tokenizer, so its figure may exceed ours. */
    function cached(): number {
      return Math.min(finish?.cachedTokens ?? 0, inputTokens);
    }
  }

  async function generateWhole(request: GenerateRequest, call: Call): Promise<GenerateResponse> {
    let text = "";
    for await (const event of generate(request, call, false)) {
      if (event.type === "delta") text += event.text;
      else if (event.type === "done") return fold(text, event.done, call);
    }
    throw new Failure("internal");
  }
}

/** The events of an answer that was given before. */
function* replay(
  { $typeName: _, answer, latencyMs: __, ...rest }: GenerateResponse,
  { requestId }: Call,
): Generator<Event> {
  yield { type: "delta", text: answer };
  yield { type: "done", done: create(StreamGenerateResponse_DoneSchema, { ...rest, requestId }) };
}

/** The whole answer as one response. */
function fold(answer: string, { $typeName: _, ...done }: StreamGenerateResponse_Done, call: Call): GenerateResponse {
  const latencyMs = Math.round(performance.now() - call.startedAt);
  return create(GenerateResponseSchema, { ...done, answer, latencyMs });
}

/** Input is counted once, over what the caller sent and nothing that the service adds. */
async function countInput(engine: Engine, { conversation, schema }: Checked): Promise<number> {
  const texts = [...conversation.system, ...conversation.turns.map((turn) => turn.text), schema ?? ""];
  let total = 0;
  for (const text of texts) if (text !== "") total += await engine.tokenizer.countAsync(text);
  return total;
}

function structuredOf(asked: Checked, finish: Finish | undefined): { structured?: string; structuredError?: string } {
  if (asked.shape === "text") return {};
  return {
    structured: finish?.structured ?? "null",
    ...(finish?.structured === undefined
      ? { structuredError: "The answer was cut short before it was whole." }
      : finish.structuredError === undefined
        ? {}
        : { structuredError: finish.structuredError }),
  };
}

function cutFailure(cut: CutShort): Failure {
  return cut.why === "deadline" ? new Failure("timed_out") : new Failure("overloaded", { retryAfterMs: 1_000 });
}

function ownNotices(request: GenerateRequest, offline: boolean): Notice[] {
  const notices: Notice[] = [];
  if (offline) {
    notices.push(
      notice(
        "offline_models",
        "No vendor is configured. The built-in offline models answered; they only extract and calculate.",
      ),
    );
  }
  if (request.attachments.length > 0) {
    notices.push(
      notice(
        "attachments_not_read",
        "This version does not read attachments. The answer was made without them.",
        "attachments",
      ),
    );
  }
  if (request.webSearch) {
    notices.push(
      notice("web_search_unavailable", "No web search is configured. The answer was made without it.", "web_search"),
    );
  }
  return notices;
}

export function notice(code: string, message: string, field?: string): Notice {
  return create(NoticeSchema, { code, message, ...(field === undefined ? {} : { field }) });
}

function effortWord(effort: Effort): "auto" | "low" | "medium" | "high" {
  return effort === Effort.LOW ? "low" : effort === Effort.MEDIUM ? "medium" : effort === Effort.HIGH ? "high" : "auto";
}

interface Trace {
  add(step: Step): TraceStep;
  whole(): IntelligenceTrace;
}

function startTrace(wanted: boolean, level: Level): Trace | undefined {
  if (!wanted) return undefined;
  const start = performance.now();
  const steps: TraceStep[] = [];
  const elapsed = () => Math.round(performance.now() - start);
  return {
    add({ kind, role, outcome }) {
      const open = steps.at(-1);
      if (outcome === undefined || !open) {
        const step = create(TraceStepSchema, { kind, role, startedMs: elapsed() });
        steps.push(step);
        return step;
      }
      open.durationMs = elapsed() - open.startedMs;
      open.outcome = outcome;
      return open;
    },
    whole: () => create(IntelligenceTraceSchema, { intelligenceLevel: levelEffort(level), steps }),
  };
}

function levelEffort(level: Level): Effort {
  return level === "low" ? Effort.LOW : level === "medium" ? Effort.MEDIUM : Effort.HIGH;
}
