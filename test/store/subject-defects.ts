import type { BookDefect } from "./book-defects.ts";

/** What the end user u of the request `ws_1_now` has used. */
const USAGE = ["minute', '2026-05-06 07:08Z", "hour', '2026-05-06 07:00Z", "day', '2026-05-06Z"]
  .map((start) => `insert into usage_subjects values ('ws_1', '${start}', 'user:u', 1, 0, 1, 7, 0, 10)`)
  .join("; ");
const USER = "update generations set end_user = 'u' where request_id = 'ws_1_now'";

/** Counters of a subject, of minute, day, week, month and all time. */
function counters(subject: string, spent: string, requests = "0,0,0,0,0", output = "0,0,0,0,0"): string {
  return (
    "insert into subject_periods values ('ws_1', " +
    `'${subject}', '2026-05-06 07:08:09Z', '{${requests}}', '{0,0,0,0,0}', '{${output}}', '{${spent}}')`
  );
}

function cap(figure: string, period: string, amount: number, action = "refuse"): string {
  const id = `${figure} ${period} ${action}`;
  const values = ["ws_1", id, "user:u", figure, period, amount, action].map((value) => `'${value}'`);
  return `insert into caps values (${values.join()}, null, now())`;
}

function audit(workspace: string, at: string, action: string): string {
  return (
    "insert into audit (workspace_id, at, actor_kind, actor_id, action, details) values " +
    `('${workspace}', '${at}', 'owner', 'o', '${action}', '{}')`
  );
}

const SIX = counters("user:u", "0,60,60,60,0", "6,6,6,6,6", "6,6,6,6,6");

/** Defects of what end users, tags and keys have used, and of their caps, and changes that are none. */
export const SUBJECT_DEFECTS: readonly BookDefect[] = [
  {
    what: "usage of an end user that no generation names",
    sql: USAGE,
    finds: [
      "usage by minute | ws_1 | user:u from 2026-05-06 07:08:00+00 |  | 1 answered, 0 failed, 1+7 tokens, 0 cached, " +
        "10 micro",
    ],
  },
  {
    what: "a generation of an end user without usage",
    sql: USER,
    finds: [
      "usage by minute | ws_1 | user:u from 2026-05-06 07:08:00+00 | 1 answered, 0 failed, 1+7 tokens, 0 cached, " +
        "10 micro | none",
    ],
  },
  { what: "usage of an end user", sql: `${USAGE}; ${USER}`, finds: [] },
  {
    what: "counters of a subject without usage",
    sql: counters("user:u", "0,0,0,0,5"),
    finds: ["spent by subject = usage | ws_1 | user:u | 0 | 0.000005"],
  },
  {
    what: "counters of an end user and of a key that are their usage",
    sql: [USAGE, USER, counters("user:u", "0,0,0,0,10"), counters("key:key_1", "0,0,0,0,1400061")].join("; "),
    finds: [],
  },
  {
    what: "requests beyond a cap",
    sql: `${cap("requests", "day", 5)}; ${SIX}`,
    finds: ["cap | ws_1 | user:u requests day | <= 5 | 6"],
  },
  {
    what: "credits beyond a cap, with what a running request holds",
    sql: [...[cap("credits", "day", 100), SIX], "insert into subject_holds values ('ws_1', 'q', 'user:u', 0, 50)"].join(
      "; ",
    ),
    finds: ["cap | ws_1 | user:u credits day | <= 100 | 110"],
  },
  {
    what: "credits beyond a cap, with what a replica has reserved for its requests",
    sql: [
      ...[cap("credits", "day", 100), SIX],
      "insert into subject_grants values ('ws_1', 'user:u', 1, '2026-05-06 07:08:09Z', 50, 0, 0, 0, 0, 0, 0, true)",
    ].join("; "),
    finds: ["cap | ws_1 | user:u credits day | <= 100 | 110"],
  },
  {
    what: "as many requests as a cap, and caps that requests may exceed",
    sql: [
      ...[cap("requests", "day", 6), cap("requests", "minute", 7), cap("requests", "day", 5, "low")],
      ...[cap("requests", "total", 5), cap("output_tokens", "day", 5), cap("output_tokens", "total", 5), SIX],
    ].join("; "),
    finds: [],
  },
  {
    what: "a cap that was set in its period",
    sql: [cap("requests", "day", 5), SIX, audit("ws_1", "2026-05-06Z", "cap.set")].join("; "),
    finds: [],
  },
  {
    what: "a cap that another workspace has set, that was set before its period, or something else that was",
    sql: [
      ...[cap("requests", "day", 5), SIX, audit("ws_2", "2026-05-06Z", "cap.set")],
      ...[audit("ws_1", "2026-05-05 23:59:59Z", "cap.clear"), audit("ws_1", "2026-05-06Z", "limits.set")],
    ].join("; "),
    finds: ["cap | ws_1 | user:u requests day | <= 5 | 6"],
  },
  {
    what: "a request without a generation, a day after the first that is kept",
    sql:
      "insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro) " +
      "values ('ws_1', '2026-03-02Z', 'settlement', 'x', -1, 0)",
    finds: ["granted = ledger | ws_1 |  | -0.000001 | 0", "usage = ledger | ws_1 |  | 1.400062 | 1.400061"],
  },
];
