import { FinishReason, type IntelligenceTrace, type Notice, type Usage } from "../../../gen/chorus/v1/generation_pb.js";
import { generation } from "../rpc.ts";
import { type Draft, isStreamed, requestOf } from "./draft.ts";
import { type Step, stepOf, withStep } from "./steps.ts";

/** A request that is running or has ended. */
export interface Run {
  readonly state: "running" | "done" | "failed" | "stopped";
  readonly text: string;
  readonly steps: readonly Step[];
  /** When it was sent and when it ended, as `performance.now()`. */
  readonly startedAt: number;
  readonly endedAt: number | undefined;
  readonly end: End | undefined;
  readonly error: unknown;
}

/** The data at the end of an answer. */
export interface End {
  /** Identifier of the generation. */
  readonly id: string;
  readonly requestId: string;
  readonly usage: Usage | undefined;
  readonly finish: "stop" | "length";
  readonly notices: readonly Notice[];
  readonly structured: string | undefined;
  readonly structuredError: string | undefined;
  readonly trace: IntelligenceTrace | undefined;
}

/**
 * Sends a draft and reports each change of the run. Never throws: the result contains the error.
 * @param signal stops the request; the text that was streamed is charged
 */
export async function run(draft: Draft, onChange: (run: Run) => void, signal: AbortSignal): Promise<Run> {
  let now: Run = {
    state: "running",
    text: "",
    steps: [],
    startedAt: performance.now(),
    endedAt: undefined,
    end: undefined,
    error: undefined,
  };
  const change = (changes: Partial<Run>) => {
    now = { ...now, ...changes };
    onChange(now);
  };
  onChange(now);
  const request = { ...requestOf(draft), intelligenceTrace: true };
  try {
    if (!isStreamed(draft)) {
      const answer = await generation.generate(request, { signal });
      change({ text: answer.answer, ...endWith(answer) });
    } else {
      for await (const { event } of generation.streamGenerate(request, { signal })) {
        if (event.case === "delta") change({ text: now.text + event.value.text });
        else if (event.case === "trace" && event.value.step)
          change({ steps: withStep(now.steps, stepOf(event.value.step)) });
        else if (event.case === "done") change(endWith(event.value));
      }
      if (now.state === "running") throw new Error("The stream ended without its last event.");
    }
  } catch (error) {
    change({ state: signal.aborted ? "stopped" : "failed", error, endedAt: performance.now() });
  }
  return now;
}

/** Members that complete answers and the end of a stream share. */
interface Ending {
  id: string;
  requestId: string;
  usage?: Usage | undefined;
  finishReason: FinishReason;
  notices: Notice[];
  structured?: string | undefined;
  structuredError?: string | undefined;
  intelligenceTrace?: IntelligenceTrace | undefined;
}

function endWith(ending: Ending): Partial<Run> {
  const trace = ending.intelligenceTrace;
  return {
    state: "done",
    endedAt: performance.now(),
    end: {
      id: ending.id,
      requestId: ending.requestId,
      usage: ending.usage,
      finish: ending.finishReason === FinishReason.LENGTH ? "length" : "stop",
      notices: ending.notices,
      structured: ending.structured,
      structuredError: ending.structuredError,
      trace,
    },
    ...(trace ? { steps: trace.steps.map(stepOf) } : {}),
  };
}
