import type { BookDefect } from "./book-defects.ts";

/** Defects of balances, of what is reserved and of limits, and changes that are none. */
export const RESERVED_DEFECTS: readonly BookDefect[] = [
  {
    what: "a grant of a replica that died, while another one runs",
    sql:
      "insert into replicas (id, beat_at) values ('alive', clock_timestamp()), ('r2', " +
      "clock_timestamp() - interval '59 minutes'), ('r1', clock_timestamp() - interval '61 minutes')",
    finds: ["no orphaned grant | ws_1 | r1 | 0 | 1", "no orphaned grant | ws_2 | r1 | 0 | 1"],
  },
  {
    what: "a young grant of a replica that died",
    sql:
      "insert into replicas (id, beat_at) values ('alive', clock_timestamp()); update grants set at = " +
      "clock_timestamp() - interval '59 minutes'",
    finds: [],
  },
  {
    what: "old grants while no replica runs",
    sql: "insert into replicas (id, beat_at) values ('dead', clock_timestamp() - interval '61 seconds')",
    finds: [],
  },
  {
    what: "a balance below zero",
    sql:
      "alter table accounts drop constraint accounts_purchased_micro_check; update accounts set " +
      "purchased_micro = -1 where workspace_id = 'ws_1'",
    finds: [
      "balance | ws_1 |  | >= 0 | -0.000001",
      "purchased = ledger | ws_1 |  | 4.598939 | -0.000001",
      "reserved credit | ws_1 |  | <= -0.000001 | 0.0044",
    ],
  },
  {
    what: "a balance of nothing",
    sql: "update accounts set purchased_micro = 0 where workspace_id = 'ws_1'",
    finds: ["purchased = ledger | ws_1 |  | 4.598939 | 0", "reserved credit | ws_1 |  | <= 0 | 0.0044"],
  },
  {
    what: "more reserved than can be charged",
    sql: "update grants set credit_micro = 4598940 - 2000 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: ["reserved credit | ws_1 |  | <= 4.598939 | 4.59894", "spend limit | ws_1 | day | <= 3 | 5.000001"],
  },
  {
    what: "as much reserved as can be charged",
    sql: "update grants set credit_micro = 4598939 - 2000 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: ["spend limit | ws_1 | day | <= 3 | 5"],
  },
  {
    what: "a hold beyond the grant",
    sql: "update grants set held_micro = credit_micro + 1 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: ["hold within grant | ws_1 | r1 | 0.0024 | 0.002401"],
  },
  {
    what: "a hold of the whole grant",
    sql:
      "update grants set held_micro = credit_micro, running_now = running where workspace_id = 'ws_1' " +
      "and replica = 'r1'",
    finds: [],
  },
  {
    what: "more requests run than the grant has",
    sql: "update grants set running_now = running + 1 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: ["hold within grant | ws_1 | r1 | 0.0024 | 0.002"],
  },
  {
    what: "more in the log than the grant has",
    sql: "update settlement_log set credits_micro = 2401 where workspace_id = 'ws_1'",
    finds: ["log within grant | ws_1 | r1 | <= 0.0024 | 0.002401"],
  },
  {
    what: "as much in the log as the grant has",
    sql: "update settlement_log set credits_micro = 2400 where workspace_id = 'ws_1'",
    finds: [],
  },
  {
    what: "a log without a grant",
    sql: "update settlement_log set replica = 'r9' where workspace_id = 'ws_1'",
    finds: ["log within grant | ws_1 | r9 | <= 0 | 0.0009"],
  },
  {
    what: "more requests of a minute than the limit",
    sql: "update grants set requests = 98 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: ["reserved requests_per_minute | ws_1 |  | <= 100 | 101"],
  },
  {
    what: "more requests of a day than the limit",
    sql:
      "update accounts set limits = limits - 'requests_per_minute' where workspace_id = 'ws_1'; update " +
      "grants set requests = 998 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: ["reserved requests_per_day | ws_1 |  | <= 1000 | 1001"],
  },
  {
    what: "more requests of a month than the limit",
    sql:
      "update accounts set limits = limits - 'requests_per_minute' - 'requests_per_day' where " +
      "workspace_id = 'ws_1'; update grants set requests = 4998 where workspace_id = 'ws_1' and " +
      "replica = 'r1'",
    finds: ["reserved requests_per_month | ws_1 |  | <= 5000 | 5001"],
  },
  {
    what: "more input than the limits",
    sql: "update grants set input_tokens = 9000 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: [
      "reserved input_tokens_per_day | ws_1 |  | <= 5000 | 9011",
      "reserved input_tokens_per_minute | ws_1 |  | <= 1000 | 9011",
      "reserved input_tokens_per_month | ws_1 |  | <= 9000 | 9011",
    ],
  },
  {
    what: "as much as the limits, with nothing reserved",
    sql:
      "update periods set requests = '{101,1001,0,5001}' where workspace_id = 'ws_1'; update grants " +
      "set requests = 0 where workspace_id = 'ws_1'",
    finds: [],
  },
  {
    what: "requests reserved in an earlier minute",
    sql:
      "update grants set requests = 99, at = at - interval '1 minute' where workspace_id = 'ws_1' and " +
      "replica = 'r1'",
    finds: [],
  },
  {
    what: "requests reserved in an earlier month",
    sql:
      "update grants set requests = 9999, at = at - interval '1 month' where workspace_id = 'ws_1' and " +
      "replica = 'r1'",
    finds: [],
  },
  {
    what: "a limit that an operator has changed in this minute",
    sql:
      "update grants set requests = 98 where workspace_id = 'ws_1' and replica = 'r1'; insert into " +
      "audit (workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-05-06 " +
      "07:08Z', 'operator', 'o', 'limits.set', '{}')",
    finds: [],
  },
  {
    what: "a tier that an operator has changed in this minute",
    sql:
      "update grants set requests = 98 where workspace_id = 'ws_1' and replica = 'r1'; insert into " +
      "audit (workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-05-06 " +
      "07:08Z', 'operator', 'o', 'tier.set', '{}')",
    finds: [],
  },
  {
    what: "something else that an operator has changed",
    sql:
      "update grants set requests = 98 where workspace_id = 'ws_1' and replica = 'r1'; insert into " +
      "audit (workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-05-06 " +
      "07:08Z', 'operator', 'o', 'key.create', '{}'), ('ws_2', '2026-05-06 07:08Z', 'operator', 'o', " +
      "'tier.set', '{}'), ('ws_1', '2026-05-06 07:07:59Z', 'operator', 'o', 'tier.set', '{}')",
    finds: ["reserved requests_per_minute | ws_1 |  | <= 100 | 101"],
  },
  {
    what: "a lower spend limit of the day",
    sql: `update accounts set spend_limits = '{"day": 400059}' where workspace_id = 'ws_1'`,
    finds: ["spend limit | ws_1 | day | <= 0.400059 | 0.405461"],
  },
  {
    what: "a spend limit of what is spent",
    sql: `update accounts set spend_limits = '{"day": 405460, "week": 405461}' where workspace_id = ` + "'ws_1'",
    finds: ["spend limit | ws_1 | day | <= 0.40546 | 0.405461"],
  },
  {
    what: "what replicas can spend beyond a limit",
    sql: "update grants set credit_micro = 3000000 where workspace_id = 'ws_1' and replica = 'r2'",
    finds: ["spend limit | ws_1 | day | <= 3 | 3.403461"],
  },
  {
    what: "what replicas can spend of granted credit",
    sql:
      `update accounts set spend_limits = '{"day": 401060}', granted_micro = 9999999 where ` + "workspace_id = 'ws_1'",
    finds: ["granted = ledger | ws_1 |  | 0 | 9.999999", "spend limit | ws_1 | day | <= 0.40106 | 0.401061"],
  },
  {
    what: "a spend limit that was lowered in its period",
    sql:
      `update accounts set spend_limits = '{"day": 1}' where workspace_id = 'ws_1'; insert into audit ` +
      "(workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-05-06Z', " +
      `'owner', 'o', 'spend_limit.set', '{"period": "day"}')`,
    finds: [],
  },
  {
    what: "a spend limit of another period, workspace or time",
    sql:
      `update accounts set spend_limits = '{"day": 1}' where workspace_id = 'ws_1'; insert into audit ` +
      "(workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-05-06Z', " +
      `'owner', 'o', 'spend_limit.set', '{"period": "week"}'), ('ws_2', '2026-05-06Z', 'owner', 'o', ` +
      `'spend_limit.set', '{"period": "day"}'), ('ws_1', '2026-05-06Z', 'owner', 'o', 'limits.set', ` +
      `'{"period": "day"}'), ('ws_1', '2026-03-01Z', 'owner', 'o', 'spend_limit.set', '{"period": ` +
      `"day"}')`,
    finds: ["spend limit | ws_1 | day | <= 0.000001 | 0.405461"],
  },
  {
    what: "a spend limit that was lowered after a grant was opened",
    sql:
      `update accounts set spend_limits = '{"day": 1}' where workspace_id = 'ws_1'; update grants set ` +
      "opened_at = '2026-03-02Z' where workspace_id = 'ws_1' and replica = 'r1'; insert into audit " +
      "(workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-03-03Z', " +
      `'owner', 'o', 'spend_limit.set', '{"period": "day"}')`,
    finds: [],
  },
  {
    what: "a spend limit that was lowered while a request ran",
    sql:
      "update generations set created_at = '2026-05-04Z' where request_id = 'ws_1_both'; update " +
      `accounts set spend_limits = '{"day": 1}' where workspace_id = 'ws_1'; insert into audit ` +
      "(workspace_id, at, actor_kind, actor_id, action, details) values ('ws_1', '2026-05-05Z', " +
      `'owner', 'o', 'spend_limit.set', '{"period": "day"}')`,
    finds: [
      "usage by minute | ws_1 | key_1 from 2026-05-04 00:00:00+00 | 1 answered, 0 failed, 1+7 tokens, " +
        "0 cached, 600000 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 1 answered, 0 failed, 1+7 tokens, " +
        "0 cached, 50 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "more requests reserved at the start of a minute than the limit",
    sql:
      "update grants set requests = 98, at = '2026-05-06 07:08Z' where workspace_id = 'ws_1' and " + "replica = 'r1'",
    finds: ["reserved requests_per_minute | ws_1 |  | <= 100 | 101"],
  },
  {
    what: "as many requests as the limit",
    sql: "update grants set requests = 97 where workspace_id = 'ws_1' and replica = 'r1'",
    finds: [],
  },
  {
    what: "a spend limit that is exceeded without a grant",
    sql:
      `update accounts set spend_limits = '{"day": 1}' where workspace_id = 'ws_1'; delete from ` +
      "settlement_log where workspace_id = 'ws_1'; delete from grants where workspace_id = 'ws_1'",
    finds: ["spend limit | ws_1 | day | <= 0.000001 | 0.401061"],
  },
];
