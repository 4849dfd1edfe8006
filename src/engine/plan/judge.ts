import type { Model, ModelCall, Prompt } from "../../models/port/model.ts";
import { ModelError } from "../../models/port/model-error.ts";
import type { Comparison } from "./compare.ts";
import { type PieceGenerator, withPrompt, withStep } from "./composite.ts";
import type { Draft } from "./draft.ts";
import { type FromDrafts, withDrafts } from "./draft-prompt.ts";

const JUDGE =
  "Above is the request. Below are drafts of an answer to it, from others, in random order. " +
  "Any of them may be wrong, also where several agree. " +
  "Work the answer out yourself, check it against the drafts, and settle what they disagree on. " +
  "Then answer the request, in the form that it asks for, as if there were no drafts; do not mention them.";

/** The prompt of the judge: the request, the instruction to decide between the drafts, and the drafts. */
export function judgePrompt(prompt: Prompt, drafts: readonly Draft[], generation: string) {
  return withDrafts(prompt, JUDGE, drafts, generation);
}

interface JudgeOptions extends FromDrafts {
  /** Combines the judge's whole text with the drafts. Undefined: the judge's text is the answer. */
  join: Comparison["join"] | undefined;
}

/**
 * The judge: the strongest model sees drafts that disagree and decides a closed question, or the fields of a JSON
 * object.
 * @throws what the model throws; ModelError when its text cannot be the answer but a draft can.
 */
export function judge(options: JudgeOptions): Model {
  const { model, drafts, generation, join, steps } = options;
  const prompted = withPrompt(model, (prompt) => judgePrompt(prompt, drafts, generation));
  const judging = withStep(
    prompted,
    {
      ...{ kind: "judge", role: "strong", streamed: options.streamed && !join },
      detail: (by) => `a ${by} model saw the drafts and decided`,
      roleOf: options.roleOf,
    },
    steps,
  );
  if (!join) return judging;

  async function* ask(call: ModelCall): PieceGenerator {
    let text = "";
    for await (const piece of judging.ask(call)) {
      if (piece.type === "text") text += piece.text;
      else if (piece.type !== "end") yield piece;
      else {
        const joined = join?.(drafts, text);
        if (joined === undefined) throw new ModelError("The judge gives no valid object.", { retryable: false });
        yield { type: "text", text: joined };
        yield piece;
      }
    }
  }
  return { name: "judge", ask };
}
