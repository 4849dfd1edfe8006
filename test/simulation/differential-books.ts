import type { Pool } from "../../src/store/pool.ts";
import type { Account, Grant, Limits } from "./account.ts";
import { holdsOf, PERIODS, type SubjectUse } from "./caps.ts";
import type { KeyUse } from "./keys.ts";
import type { SubjectReserve } from "./subject-grants.ts";
import { UNITS } from "./windows.ts";

/** Limits as the columns of `accounts` have them. */
export function columnsOf({ running, requests, input, output, spend = {} }: Limits): { limits: object; spend: object } {
  const perUnit = (name: string, counts: object | undefined) =>
    Object.fromEntries(Object.entries(counts ?? {}).map(([unit, most]) => [`${name}_per_${unit}`, most]));
  const limits = {
    ...(running === undefined ? {} : { concurrent_requests: running }),
    ...perUnit("requests", requests),
    ...perUnit("input_tokens", input),
    ...perUnit("output_tokens", output),
  };
  return { limits, spend };
}

/** The books of a workspace in the database. */
export async function foundIn(pool: Pool, workspace: string): Promise<unknown> {
  const [found] = await pool.query(
    `select granted_micro::text as granted, purchased_micro::text as purchased, limits,
       spend_limits as spend, requests, input_tokens as input,
       output_tokens as output, spent_micro as spent,
       (extract(epoch from at) * 1000)::float8 as at, (extract(epoch from clock) * 1000)::float8 as clock,
       (select array_agg(concat_ws(' ', encode(key, 'hex'), encode(body, 'hex'), request_id, encode(response, 'base64'))
         order by key) from idempotency i where i.workspace_id = $1) as keys,
       (select array_agg(concat_ws(' ', replica, seq, credit_micro, held_micro, running, running_now, requests,
          input_tokens, output_tokens, (extract(epoch from at) * 1000)::float8) order by replica collate "C")
        from grants g where g.workspace_id = $1) as grants,
       (select array_agg(concat_ws(' ', request_id, credits_micro) order by request_id collate "C")
        from generations g where g.workspace_id = $1) as posted,
       (select array_agg(concat_ws(' ', subject, (extract(epoch from s.at) * 1000)::float8, s.requests,
          s.input_tokens, s.output_tokens, s.spent_micro) order by subject collate "C")
        from subject_periods s where s.workspace_id = $1) as subjects,
       (select array_agg(concat_ws(' ', request_id, subject, hold_micro) order by request_id collate "C", subject)
        from subject_holds h where h.workspace_id = $1 and exists (
          select from grants g where g.workspace_id = $1 and g.id = h.grant_id)) as holds,
       (select array_agg(concat_ws(' ', subject, g.replica, (extract(epoch from s.at) * 1000)::float8, s.credit_micro,
          s.held_micro, s.running, s.running_now, s.requests, s.input_tokens, s.output_tokens, s.has_idle)
          order by subject, g.replica collate "C")
        from subject_grants s join grants g on g.workspace_id = $1 and g.id = s.grant_id
        where s.workspace_id = $1) as reserves,
       (select coalesce(sum(json_array_length(posts)), 0)::text from settlement_log l
        where l.workspace_id = $1) as waiting,
       (select coalesce(sum(requests), 0)::text from usage u where u.workspace_id = $1 and unit = 'hour') as answered
     from accounts a left join periods p using (workspace_id) where workspace_id = $1`,
    [workspace],
  );
  return found;
}

/** The books of an account of the model, as `foundIn` returns them. */
export function expectedOf(account: Account, prefix: string): object {
  const counts = (of: Account["requests"]) => UNITS.map((unit) => String(of[unit]));
  const { granted, purchased, requests, input, output, spent, at, clock, posted, keys, grants, log } = account;
  const orNull = (texts: string[]) => (texts.length > 0 ? texts.sort() : null);
  return {
    granted: String(granted),
    purchased: String(purchased),
    ...columnsOf(account.limits),
    requests: counts(requests),
    input: counts(input),
    output: counts(output),
    spent: counts(spent),
    at,
    clock,
    keys: orNull([...keys].map(usedBy)),
    grants: orNull([...grants].map((entry) => reservedBy(entry, prefix))),
    posted: orNull([...posted].map(([request, charge]) => `${request} ${charge}`)),
    subjects: orNull([...account.subjects].map((entry) => usedBySubject(entry, prefix))),
    holds: orNull(
      [...new Set([...account.holds.values()].map(({ subject }) => subject))]
        .flatMap((subject) => holdsOf(account, subject))
        .map(({ requestId, subject, hold }) => `${requestId} ${keyed(subject, prefix)} ${hold}`),
    ),
    reserves: orNull([...account.reserves.values()].map((row) => reservedOfSubject(row, account, prefix))),
    waiting: String(log.flatMap(({ posts }) => posts).length),
    answered: String(posted.size),
  };
}

function reservedOfSubject(row: SubjectReserve, { grants }: Account, prefix: string): string {
  const { subject, grant, at, credit, held, running, runningNow, requests, input, output, hasIdle } = row;
  const [replica] = [...grants].find(([, { id }]) => id === grant) ?? ["none"];
  const sizes = [at, credit, held, running, runningNow, requests, input, output, hasIdle ? "t" : "f"];
  return [keyed(subject, prefix), prefix + replica, ...sizes].join(" ");
}

function usedBy([key, { body, requestId, response }]: [string, KeyUse]): string {
  return [key, body, requestId, ...(response === undefined ? [] : [response])].join(" ");
}

function reservedBy([replica, grant]: [string, Grant], prefix: string): string {
  const { seq, credit, held, running, runningNow, requests, input, output, at } = grant;
  return [prefix + replica, seq, credit, held, running, runningNow, requests, input, output, at].join(" ");
}

/** A subject with a name of its own if it is a key, because keys have different names in all workspaces. */
export function keyed(subject: string, prefix: string): string {
  return subject.replace(/^key:(?!\*)/, `key:${prefix}`);
}

function usedBySubject([subject, { at, ...use }]: [string, SubjectUse], prefix: string): string {
  const counts = [use.requests, use.input, use.output, use.spent].map((of) => `{${PERIODS.map((unit) => of[unit])}}`);
  return [keyed(subject, prefix), at, ...counts].join(" ");
}
