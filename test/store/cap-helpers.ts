import type { Query } from "../../src/store/pool.ts";
import { AT } from "./case-helpers.ts";

export const MINUTE = 60_000;
export const DAY = 86_400_000;

const NONE = [0, 0, 0, 0, 0];
let caps = 0;

/** Sets a cap that refuses, unless `action` says otherwise. `endsAt` is in milliseconds since 1970. */
export async function cap(
  query: Query,
  subject: string,
  figure: string,
  period: string,
  amount: number,
  {
    workspace = "w",
    action = "refuse",
    endsAt,
    byDeveloper = false,
  }: { workspace?: string; action?: string; endsAt?: number; byDeveloper?: boolean } = {},
): Promise<void> {
  await query("insert into caps values ($1, $2, $3, $4, $5, $6, $7, $8, $9, null, $10)", [
    ...[workspace, `cap_${++caps}`, subject, figure, period, amount, action],
    ...[endsAt === undefined ? null : new Date(endsAt), new Date(AT), byDeveloper],
  ]);
}

/** What a subject has used in minute, day, week, month and all time. `after`: when, in milliseconds after AT. */
export async function useOf(
  query: Query,
  subject: string,
  { requests = NONE, input = NONE, output = NONE, spent = NONE }: Partial<Record<string, readonly number[]>>,
  after = 0,
): Promise<void> {
  await query("delete from subject_periods where workspace_id = 'w' and subject = $1", [subject]);
  await query("insert into subject_periods values ('w', $1, $2, $3, $4, $5, $6)", [
    ...[subject, new Date(AT + after), requests, input, output, spent],
  ]);
}

/** What a running request of a grant holds, in micro-credits. */
export async function holdOf(
  query: Query,
  request: string,
  subject: string,
  grant: number,
  micro: number,
  workspace = "w",
): Promise<void> {
  await query("insert into subject_holds values ($1, $2, $3, $4, $5)", [workspace, request, subject, grant, micro]);
}

/** Headroom that a grant has of a subject. `after`: since when, in milliseconds after AT. */
export async function share(
  query: Query,
  subject: string,
  grant: number,
  {
    isIdle = true,
    ...parts
  }: Partial<Record<"credit" | "held" | "running" | "runs" | "requests" | "input" | "output", number>> & {
    isIdle?: boolean;
  },
  workspace = "w",
  after = 0,
): Promise<void> {
  const { credit = 0, held = 0, running = 0, runs = 0, requests = 0, input = 0, output = 0 } = parts;
  await query("insert into subject_grants values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)", [
    ...[workspace, subject, grant, new Date(AT + after), credit, held, running, runs],
    ...[requests, input, output, isIdle],
  ]);
}

/** The verdict of `check_caps` on a request of the workspace w. */
export async function check(query: Query, subjects: readonly string[], hold: number, input: number): Promise<unknown> {
  const [row] = await query<{ verdict: unknown }>(
    "select check_caps($1::text[], periods_at('w', $2), $3, $4) as verdict",
    [subjects, new Date(AT), hold, input],
  );
  return row?.verdict;
}

/** The rows of a query with one column of text, sorted. */
export async function textsOf(query: Query, sql: string, values: readonly unknown[] = []): Promise<string[]> {
  const rows = await query<Record<string, string>>(sql, [...values]);
  return rows.map((row) => String(Object.values(row)[0])).sort();
}

/** The counters of subjects that are kept, and the time of each. */
export const countsIn = (query: Query) =>
  textsOf(
    query,
    `select concat_ws(' ', workspace_id, subject, requests, input_tokens, output_tokens, spent_micro,
       to_char(at at time zone 'UTC', 'HH24:MI:SS')) from subject_periods`,
  );

/** Of each grant of a subject: credit, held, running, running now, requests, input, output, idle, and the time. */
export const sharesIn = (query: Query) =>
  textsOf(
    query,
    `select concat_ws(' ', workspace_id, subject, grant_id, credit_micro, held_micro, running, running_now, requests,
       input_tokens, output_tokens, has_idle, to_char(at at time zone 'UTC', 'HH24:MI:SS')) from subject_grants`,
  );

/** Opens a grant without headroom of its own. */
export const openGrant = (query: Query, workspace: string, id: number) =>
  query(
    `insert into grants (workspace_id, replica, id, seq, at, opened_at, credit_micro, held_micro, running, running_now,
       requests, input_tokens, output_tokens, reply)
     values ($1, 'r' || $2::text, $2::bigint, 1, $3, $3, 0, 0, 0, 0, 0, 0, 0, '{}')`,
    [workspace, id, new Date(AT)],
  );
