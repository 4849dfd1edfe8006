import type { Model, ModelCall, Piece, Prompt } from "../../models/port/model.ts";
import { tracedParts } from "../../telemetry/tracing.ts";
import { type Steps, stepPiece } from "./step.ts";

/** The pieces of a completion, as the models of this folder make them. */
export type PieceGenerator = AsyncGenerator<Piece, void, undefined>;

/** A model that gets a changed prompt. */
export function withPrompt(model: Model, change: (prompt: Prompt) => Prompt): Model {
  return { name: model.name, ask: (call) => model.ask({ ...call, prompt: change(call.prompt) }) };
}

export interface StepOptions {
  /** See `Step.kind`. */
  kind: string;
  /** See `Step.role`. */
  role: string;
  /** What the step is for, as a sentence for the caller. */
  detail?: string | undefined;
  /** The role of a model by its catalogue name: the model that answered may be another one after a failover. */
  roleOf?: ((model: string) => string | undefined) | undefined;
  /** Whether the model streams. If not it makes unary calls, which are cheaper and can be replaced until they end. */
  streamed: boolean;
}

/** A model that reports each call as one step: its start before the model is called, its end before the end piece. */
export function withStep(model: Model, options: StepOptions, steps: Steps): Model {
  const { kind, role, streamed, detail, roleOf } = options;

  async function* ask(call: ModelCall): PieceGenerator {
    const step = steps.begin(kind, role);
    yield stepPiece(step);
    try {
      for await (const piece of model.ask(call)) {
        if (piece.type === "end")
          yield stepPiece({
            ...step,
            role: roleOf?.(piece.model) ?? role,
            outcome: "ok",
            ...(detail ? { detail } : {}),
          });
        yield piece;
      }
    } catch (error) {
      yield stepPiece({ ...step, outcome: "failed" });
      throw error;
    }
  }
  return {
    name: model.name,
    ask(call) {
      const own = call.streamed === streamed ? call : { ...call, streamed };
      // A generator that only passes pieces on takes time and memory.
      const pieces = steps.areRead ? ask(own) : model.ask(own);
      return tracedParts(kind, pieces, { attributes: { "chorus.role": role }, signal: call.signal });
    },
  };
}
