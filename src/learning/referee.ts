import { pause } from "../concurrency/abort.ts";
import type { RefereeConfig } from "../config/learning.ts";
import { timeOfGeneration } from "../contract/generation-id.ts";
import { ABILITIES, type Shape } from "../contract/terms.ts";
import type { Kind } from "../engine/difficulty/difficulty.ts";
import type { Member } from "../models/catalogue.ts";
import { isOnline, rank } from "../models/order.ts";
import { complete, type Message } from "../models/port/model.ts";
import { ModelError } from "../models/port/model-error.ts";
import type { Drafted } from "../outcomes/drafts.ts";
import { digestOf, formName, formOfCanonical } from "../outcomes/form.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import type { InternalErrors } from "../telemetry/internal-errors.ts";
import { DailyBudget } from "./budget.ts";
import { type GradePrompt, gradePrompt, verdictOf } from "./grade-prompt.ts";

/** An answer that has been delivered and charged. */
export interface Delivered {
  readonly workspaceId: string;
  readonly generation: string;
  readonly kind: Kind;
  readonly shape: Shape;
  /** What the models were asked, with files and search results. */
  readonly asked: { readonly system: readonly string[]; readonly messages: readonly Message[] };
  readonly drafted: Drafted | undefined;
}

/** What has become of answers whose drafts disagreed. `dropped`: the queue was full, or the model is not available. */
export const GRADE_ENDS = ["graded", "unclear", "failed", "dropped", "over_budget"] as const;
export type GradeEnd = (typeof GRADE_ENDS)[number];

/** Has drafts that disagree graded by a model, in the background. */
export interface Referee {
  /** Takes an answer whose drafts disagree, if there is room. Returns at once and never throws. */
  offer(delivered: Delivered): void;
  readonly counts: Readonly<Record<GradeEnd, number>>;
  /** Aborts the running call. */
  stop(): Promise<void>;
}

interface Parts {
  config: RefereeConfig;
  /** The models of the current catalogue. */
  members(): readonly Member[];
  /** Posts what waits in the log of a workspace. */
  post(workspaceId: string): Promise<void>;
  errors: InternalErrors;
  /** From 0 up to 1. Default `Math.random`. */
  random?: () => number;
}

interface Task extends GradePrompt {
  readonly workspaceId: string;
  readonly generation: string;
  readonly form: NonNullable<ReturnType<typeof formName>>;
}

/** Most answers that wait. Their texts are in memory only. */
const MAX_WAITING = 32;
/** Tokens of the visible verdict, and at most of the thinking before it. */
const OUTPUT = { verdict: 1_024, thinking: 12_288 };
/** Most calls for a verdict, retries included. */
const TRIES = 3;
/** Tokens that a vendor adds to a prompt, at most. */
const OVERHEAD = 500;
/** Time for a verdict, in milliseconds. */
const TIME_MS = 60_000;

/** One verdict at a time, so that grading never competes with answers for more than one call. */
export function startReferee(pool: Pool, { config, members, post, errors, random = Math.random }: Parts): Referee {
  const budget = new DailyBudget(pool, config.usdPerDay);
  const counts: Record<GradeEnd, number> = { graded: 0, unclear: 0, failed: 0, dropped: 0, over_budget: 0 };
  const stopping = new AbortController();
  const { signal } = stopping;
  const waiting: Task[] = [];
  let running: Promise<void> | undefined;

  async function work(): Promise<void> {
    // After the request that has offered the text.
    await pause(0, signal).catch(() => undefined);
    for (let task = waiting.shift(); task && !signal.aborted; task = waiting.shift()) {
      try {
        counts[await grade(task)] += 1;
      } catch (error) {
        counts.failed += 1;
        if (!signal.aborted && !isUnavailable(error)) errors.add("learning", error);
      }
    }
    running = undefined;
  }

  async function grade(task: Task): Promise<GradeEnd> {
    const referee = members().find(({ name }) => name === config.model);
    if (!referee?.price) return "dropped";
    const reserved = highestPrice(task, referee.price);
    const day = await budget.reserve(reserved);
    if (day === undefined) return "over_budget";
    const { text, usd } = await ask(referee, task, signal);
    if (usd !== undefined) await budget.correct(day, reserved, usd);
    if (text === undefined) return "failed";
    const right = verdictOf(text, task.answers);
    if (right === undefined) return "unclear";
    await post(task.workspaceId);
    await record(pool, task, right);
    return "graded";
  }

  function take(delivered: Delivered): void {
    const form = delivered.shape === "text" ? formName(delivered.kind, delivered.shape) : undefined;
    if (!form || signal.aborted || !(random() < config.share)) return;
    const answers = answersOf(delivered, form);
    if (new Set(answers).size < 2) return;
    const made = waiting.length < MAX_WAITING ? gradePrompt(delivered.asked, answers, random) : undefined;
    if (!made) {
      counts.dropped += 1;
      return;
    }
    const { workspaceId, generation } = delivered;
    waiting.push({ workspaceId, generation, form, ...made });
    running ??= work();
  }

  return {
    offer: (delivered) => errors.guard("learning", () => take(delivered)),
    counts,
    async stop() {
      stopping.abort();
      waiting.length = 0;
      await running;
    },
  };
}

/** @returns `usd` undefined if it is not known what the call cost; then the reservation stays */
async function ask(
  { model }: Member,
  { prompt }: Task,
  signal: AbortSignal,
): Promise<{ text?: string; usd: number | undefined }> {
  let usd: number | undefined;
  const onUsed = (used: { usd: number | undefined }) => {
    usd = (usd ?? 0) + (used.usd ?? 0);
  };
  try {
    const { text } = await complete(model, {
      ...{ prompt, signal, endsAt: performance.now() + TIME_MS, streamed: false, onUsed },
      ...{ maxTokens: OUTPUT.verdict, reasoning: "low", defaultTemperature: 0 },
    });
    return { text, usd };
  } catch (error) {
    // A vendor that fails is counted where it is called.
    const isSent = !(error instanceof ModelError && error.kind === "not_asked");
    return { usd: signal.aborted ? undefined : (usd ?? (isSent ? undefined : 0)) };
  }
}

async function record(pool: Pool, { workspaceId, generation, form }: Task, right: string | null): Promise<void> {
  const began = timeOfGeneration(generation);
  if (began === undefined) return;
  const expected = right === null ? {} : { [form]: digestOf(generation, right) };
  const values = [workspaceId, generation, new Date(began), JSON.stringify(expected)];
  await pool.query("select record_grades($1, $2, $3, $4)", values);
}

/** The answers of the drafts, in the form by which they are compared. */
function answersOf({ drafted }: Delivered, form: Task["form"]): string[] {
  return (drafted?.drafts ?? []).flatMap(({ canonical }) =>
    canonical === undefined ? [] : (formOfCanonical(form, canonical) ?? []),
  );
}

/** The price of all tries of a call with the longest answer, in USD. A token has at least one byte. */
function highestPrice({ prompt }: Task, price: { input: number; output: number }): number {
  const bytes = Buffer.byteLength(prompt.system + prompt.messages.map(({ text }) => text).join(""));
  return (TRIES * ((bytes + OVERHEAD) * price.input + (OUTPUT.verdict + OUTPUT.thinking) * price.output)) / 1e6;
}

/**
 * Checks that a model can grade the others: it has a price, and no other one is known to be better.
 * @returns undefined, or what is wrong; `isCertain` false: the strengths are not known for all models
 */
export function refereeProblem(
  members: readonly Member[],
  name: string,
): { isCertain: boolean; problem: string } | undefined {
  const referee = members.find((member) => member.name === name);
  if (!referee || !isOnline(referee)) return certain(`the catalogue has no model "${name}" of a vendor`);
  if (!referee.price) return certain(`the model "${name}" has no price in the catalogue, so its budget cannot be kept`);
  let isKnown = true;
  for (const ability of ABILITIES) {
    const ranked = rank(members.filter(isOnline), ability).members;
    if (ranked.some(({ accuracy }) => accuracy === undefined)) isKnown = false;
    const own = ranked.find((member) => member.name === name)?.accuracy;
    const better = ranked.find(({ accuracy = 0 }) => own !== undefined && accuracy > own);
    if (better) return certain(`the model "${better.name}" is more accurate than "${name}" in ${ability}`);
  }
  if (isKnown) return undefined;
  return { isCertain: false, problem: `it is not known of all models that none is more accurate than "${name}"` };
}

function certain(problem: string) {
  return { isCertain: true, problem };
}
