import assert from "node:assert/strict";
import type { startPanel } from "../helpers/panel.ts";

const QUESTION = "What is the capital of France? (a) Lyon (b) Paris (c) Rome";

export type Panel = Awaited<ReturnType<typeof startPanel>>;

/** The models of Anthropic are right, and no other. @param version what Anthropic says has answered */
export function scriptAnthropicRight(panel: Panel, version = "scripted"): void {
  panel.script({
    openai: { draft: { text: "Answer: (a)" } },
    anthropic: { draft: { text: "Answer: (b)", version } },
    google: { draft: { text: "Answer: (c)" } },
  });
}

/** Two fast models draft and disagree, a strong one answers, and the caller records the right answer. */
export async function grade(panel: Panel): Promise<void> {
  const { id } = await panel.ask({ prompt: QUESTION, effort: "medium" });
  const response = await panel.service.post(`/v1/generations/${id}/outcome`, { expected: "b" });
  assert.equal(response.status, 200);
}

/** Which vendor a fast answer comes from, and the clauses of its trace. */
export async function firstAsked(panel: Panel, on = panel.service): Promise<{ vendor: string; trace: string }> {
  for (const { calls } of Object.values(panel.vendors)) calls.length = 0;
  const answer = await panel.ask({ prompt: QUESTION, effort: "low", intelligence_trace: true }, on);
  const vendor = Object.values(panel.vendors).find(({ calls }) => calls.length > 0)?.kind ?? "";
  return { vendor, trace: JSON.stringify(answer.intelligence_trace) };
}

export async function graded(panel: Panel): Promise<number> {
  const [row] = await panel.pool.query<{ n: number }>("select sum(wins + losses)::float8 as n from model_duels");
  return row?.n ?? 0;
}
