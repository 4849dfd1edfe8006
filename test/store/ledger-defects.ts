import type { BookDefect } from "./book-defects.ts";

/** Defects between ledger, accounts, generations, usage and periods, and changes that are none. */
export const LEDGER_DEFECTS: readonly BookDefect[] = [
  {
    what: "granted credit without a booking",
    sql: "update accounts set granted_micro = granted_micro + 1 where workspace_id = 'ws_1'",
    finds: ["granted = ledger | ws_1 |  | 0 | 0.000001"],
  },
  {
    what: "less purchased credit than is booked",
    sql: "update accounts set purchased_micro = purchased_micro - 1 where workspace_id = 'ws_2'",
    finds: ["purchased = ledger | ws_2 |  | 4.598939 | 4.598938"],
  },
  {
    what: "purchased credit without a booking",
    sql: "update accounts set purchased_micro = purchased_micro + 2 where workspace_id = 'ws_1'",
    finds: ["purchased = ledger | ws_1 |  | 4.598939 | 4.598941"],
  },
  {
    what: "a total that is not what was purchased",
    sql: "update accounts set purchased_total_micro = purchased_total_micro + 3 where workspace_id = 'ws_1'",
    finds: ["total purchased = ledger | ws_1 |  | 5 | 5.000003"],
  },
  {
    what: "an account with credit and no ledger",
    sql:
      "insert into accounts (workspace_id, granted_micro, purchased_micro, purchased_total_micro) " +
      "values ('ws_3', 4, 5, 6)",
    finds: [
      "granted = ledger | ws_3 |  | 0 | 0.000004",
      "purchased = ledger | ws_3 |  | 0 | 0.000005",
      "total purchased = ledger | ws_3 |  | 0 | 0.000006",
    ],
  },
  {
    what: "usage of an account without a ledger",
    sql:
      "insert into accounts (workspace_id) values ('ws_3'); insert into usage values ('ws_3', 'day', " +
      "'2026-05-06Z', 'k', 1, 0, 1, 1, 0, 9), ('ws_3', 'hour', '2026-05-06Z', 'k', 1, 0, 1, 1, 0, 9)",
    finds: [
      "usage = ledger | ws_3 |  | 0 | 0.000009",
      "usage by hour | ws_3 | k from 2026-05-06 00:00:00+00 |  | 1 answered, 0 failed, 1+1 tokens, 0 " +
        "cached, 9 micro",
    ],
  },
  {
    what: "a booking that is not in the ledger",
    sql: "insert into bookings values ('ws_1', 'lost', 'grant', 7, now())",
    finds: ["booking = ledger | ws_1 | lost | 0.000007 | 0"],
  },
  {
    what: "an entry of the ledger without its booking",
    sql: "delete from bookings where workspace_id = 'ws_1' and reference = 'back'",
    finds: ["booking = ledger | ws_1 | back | 0 | -0.001"],
  },
  {
    what: "a booking of another amount",
    sql: "update bookings set amount_micro = amount_micro + 1 where workspace_id = 'ws_1' and kind = 'purchase'",
    finds: ["booking = ledger | ws_1 | second | 5.000001 | 5"],
  },
  {
    what: "a settled request without a generation",
    sql: "delete from generations where request_id = 'ws_1_both'",
    finds: [
      "charge = generation | ws_1 | ws_1_both | 0 | 0.6",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 1 answered, 0 failed, 1+7 tokens, " +
        "0 cached, 50 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "a generation with another charge than the ledger",
    sql: "update generations set credits_micro = credits_micro + 1 where request_id = 'ws_1_both'",
    finds: [
      "charge = generation | ws_1 | ws_1_both | 0.600001 | 0.6",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 2 answered, 0 failed, 2+14 tokens, " +
        "0 cached, 600051 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "a generation that is not in the ledger",
    sql:
      "insert into generations select workspace_id, created_at, 'gen_x', 'ws_1_x', key_id, streamed, " +
      "shape, effort, level, 0, 0, 0, 11, 'ok', finish_reason, latency_ms from generations where " +
      "request_id = 'ws_1_now'",
    finds: [
      "charge = generation | ws_1 | ws_1_x | 0.000011 | 0",
      "usage by minute | ws_1 | key_1 from 2026-05-06 07:08:00+00 | 3 answered, 1 failed, 2+14 tokens, " +
        "0 cached, 21 micro | 2 answered, 1 failed, 2+14 tokens, 0 cached, 10 micro",
    ],
  },
  {
    what: "a charge for a request that failed",
    sql: "update generations set outcome = 'internal' where request_id = 'ws_1_both'",
    finds: [
      "uncharged outcome | ws_1 | ws_1_both | 0 | 0.6",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 1 answered, 1 failed, 1+7 tokens, " +
        "0 cached, 600050 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "a charge for a caller who left without a stream",
    sql: "update generations set streamed = false where request_id = 'ws_1_left'",
    finds: [
      "uncharged outcome | ws_1 | ws_1_left | 0 | 0.00005",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 1 answered, 1 failed, 1+7 tokens, " +
        "0 cached, 600050 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "a charge for an answer that was cut short",
    sql: "update generations set outcome = 'cut_short' where request_id = 'ws_1_now'",
    finds: ["uncharged outcome | ws_1 | ws_1_now | 0 | 0.00001"],
  },
  {
    what: "a settlement that adds granted credit",
    sql:
      "insert into ledger (workspace_id, at, kind, reference, granted_micro) select workspace_id, at, " +
      "kind, reference, 1 from ledger where reference = 'ws_1_both'",
    finds: [
      "charge = generation | ws_1 | ws_1_both | 0.6 | 0.599999",
      "granted = ledger | ws_1 |  | 0.000001 | 0",
      "settled once | ws_1 | ws_1_both | 1 | 2",
      "settlement takes credit | ws_1 | ws_1_both | 0 | 0.000001",
      "usage = ledger | ws_1 |  | 1.40006 | 1.400061",
    ],
  },
  {
    what: "a settlement that adds purchased credit",
    sql: "update ledger set purchased_micro = 1 where reference = 'ws_1_now'",
    finds: [
      "charge = generation | ws_1 | ws_1_now | 0.00001 | -0.000001",
      "purchased = ledger | ws_1 |  | 4.59895 | 4.598939",
      "settlement takes credit | ws_1 | ws_1_now | 0 | 0.000001",
      "spent in period = ledger | ws_1 | day | 0.40105 | 0.401061",
      "spent in period = ledger | ws_1 | minute | -0.000001 | 0.00001",
      "spent in period = ledger | ws_1 | month | 0.40105 | 0.401061",
      "spent in period = ledger | ws_1 | week | 0.40105 | 0.401061",
      "usage = ledger | ws_1 |  | 1.40005 | 1.400061",
    ],
  },
  {
    what: "usage with less than the ledger",
    sql:
      "update usage set credits_micro = credits_micro - 1 where workspace_id = 'ws_1' and unit = 'day' " +
      "and start = '2026-05-06Z'",
    finds: [
      "usage = ledger | ws_1 |  | 1.400061 | 1.40006",
      "usage by day | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 4 answered, 2 failed, 4+28 tokens, 0 " +
        "cached, 600060 micro | 4 answered, 2 failed, 4+28 tokens, 0 cached, 600059 micro",
    ],
  },
  {
    what: "no usage of a day",
    sql: "delete from usage where workspace_id = 'ws_1' and unit = 'day' and start = '2026-05-06Z'",
    finds: [
      "usage = ledger | ws_1 |  | 1.400061 | 0.800001",
      "usage by day | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 4 answered, 2 failed, 4+28 tokens, 0 " +
        "cached, 600060 micro | none",
    ],
  },
  {
    what: "usage of an hour with other tokens",
    sql:
      "update usage set input_tokens = input_tokens + 1, output_tokens = output_tokens + 1, " +
      "cached_tokens = cached_tokens + 1 where workspace_id = 'ws_1' and unit = 'hour' and start = " +
      "'2026-05-06 07:00Z'",
    finds: [
      "usage by day | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 4 answered, 2 failed, 5+29 tokens, 1 " +
        "cached, 600060 micro | 4 answered, 2 failed, 4+28 tokens, 0 cached, 600060 micro",
      "usage by hour | ws_1 | key_1 from 2026-05-06 07:00:00+00 | 2 answered, 1 failed, 2+14 tokens, 0 " +
        "cached, 10 micro | 2 answered, 1 failed, 3+15 tokens, 1 cached, 10 micro",
    ],
  },
  {
    what: "usage of a minute with other counts",
    sql:
      "update usage set requests = requests + 1, failed_requests = failed_requests - 1 where " +
      "workspace_id = 'ws_1' and unit = 'minute' and start = '2026-05-06 07:08Z'",
    finds: [
      "usage by hour | ws_1 | key_1 from 2026-05-06 07:00:00+00 | 3 answered, 0 failed, 2+14 tokens, 0 " +
        "cached, 10 micro | 2 answered, 1 failed, 2+14 tokens, 0 cached, 10 micro",
      "usage by minute | ws_1 | key_1 from 2026-05-06 07:08:00+00 | 2 answered, 1 failed, 2+14 tokens, " +
        "0 cached, 10 micro | 3 answered, 0 failed, 2+14 tokens, 0 cached, 10 micro",
    ],
  },
  {
    what: "usage of a minute that nobody has used",
    sql: "insert into usage values ('ws_1', 'minute', '2026-05-06 07:09Z', 'key_1', 1, 0, 0, 0, 0, 0)",
    finds: [
      "usage by hour | ws_1 | key_1 from 2026-05-06 07:00:00+00 | 3 answered, 1 failed, 2+14 tokens, 0 " +
        "cached, 10 micro | 2 answered, 1 failed, 2+14 tokens, 0 cached, 10 micro",
      "usage by minute | ws_1 | key_1 from 2026-05-06 07:09:00+00 |  | 1 answered, 0 failed, 0+0 " +
        "tokens, 0 cached, 0 micro",
    ],
  },
  {
    what: "usage of a key that is not the key of the generation",
    sql:
      "update usage set key_id = 'key_2' where workspace_id = 'ws_1' and unit = 'minute' and start = " +
      "'2026-05-06 07:08Z'",
    finds: [
      "usage by hour | ws_1 | key_1 from 2026-05-06 07:00:00+00 |  | 2 answered, 1 failed, 2+14 " +
        "tokens, 0 cached, 10 micro",
      "usage by hour | ws_1 | key_2 from 2026-05-06 07:00:00+00 | 2 answered, 1 failed, 2+14 tokens, 0 " +
        "cached, 10 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-05-06 07:08:00+00 | 2 answered, 1 failed, 2+14 tokens, " +
        "0 cached, 10 micro | none",
      "usage by minute | ws_1 | key_2 from 2026-05-06 07:08:00+00 |  | 2 answered, 1 failed, 2+14 " +
        "tokens, 0 cached, 10 micro",
    ],
  },
  {
    what: "usage of hours before the minutes that are kept",
    sql:
      "delete from usage where unit = 'minute' and start < '2026-05-01Z'; update usage set requests = " +
      "requests + 1 where workspace_id = 'ws_1' and unit = 'hour' and start < '2026-05-01Z'; delete " +
      "from generations where created_at < '2026-05-01Z'; insert into usage values ('ws_1', 'minute', " +
      "'2026-05-01Z', 'key_1', 0, 0, 0, 0, 0, 0), ('ws_1', 'hour', '2026-05-01Z', 'key_1', 0, 0, 0, 0, " +
      "0, 0), ('ws_1', 'day', '2026-05-01Z', 'key_1', 0, 0, 0, 0, 0, 0)",
    finds: [
      "usage by day | ws_1 | key_1 from 2026-03-01 00:00:00+00 | 2 answered, 0 failed, 1+7 tokens, 0 " +
        "cached, 300000 micro | 1 answered, 0 failed, 1+7 tokens, 0 cached, 300000 micro",
      "usage by day | ws_1 | key_1 from 2026-03-20 00:00:00+00 | 2 answered, 0 failed, 1+7 tokens, 0 " +
        "cached, 1 micro | 1 answered, 0 failed, 1+7 tokens, 0 cached, 1 micro",
      "usage by minute | ws_1 | key_1 from 2026-05-01 00:00:00+00 |  | 0 answered, 0 failed, 0+0 " +
        "tokens, 0 cached, 0 micro",
    ],
  },
  {
    what: "generations of a month that is not kept",
    sql: "delete from generations where created_at < '2026-05-01Z'",
    finds: [],
  },
  {
    what: "minutes of a month that are not kept",
    sql: "delete from usage where unit = 'minute' and start < '2026-05-01Z'",
    finds: [],
  },
  {
    what: "purchased credit spent that the periods do not have",
    sql:
      "update periods set spent_micro[1] = spent_micro[1] - 1, spent_micro[2] = spent_micro[2] - 2, " +
      "spent_micro[3] = spent_micro[3] - 3, spent_micro[4] = spent_micro[4] - 4 where workspace_id = " +
      "'ws_1'",
    finds: [
      "spent in period = ledger | ws_1 | day | 0.401061 | 0.401059",
      "spent in period = ledger | ws_1 | minute | 0.00001 | 0.000009",
      "spent in period = ledger | ws_1 | month | 0.401061 | 0.401057",
      "spent in period = ledger | ws_1 | week | 0.401061 | 0.401058",
    ],
  },
  {
    what: "spending in periods in which there was none",
    sql:
      "update periods set at = at + interval '2 months', clock = clock + interval '2 months' where " +
      "workspace_id = 'ws_1'",
    finds: [
      "spent in period = ledger | ws_1 | day | 0 | 0.401061",
      "spent in period = ledger | ws_1 | minute | 0 | 0.00001",
      "spent in period = ledger | ws_1 | month | 0 | 0.401061",
      "spent in period = ledger | ws_1 | week | 0 | 0.401061",
    ],
  },
  {
    what: "a request that was settled twice",
    sql:
      "insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro) select " +
      "workspace_id, at, kind, reference, 0, 0 from ledger where reference = 'ws_1_both'",
    finds: ["settled once | ws_1 | ws_1_both | 1 | 2"],
  },
  {
    what: "a request with two generations",
    sql:
      "insert into generations select workspace_id, created_at, 'gen_y', request_id, key_id, streamed, " +
      "shape, effort, level, 0, 0, 0, 0, 'internal', finish_reason, latency_ms from generations where " +
      "request_id = 'ws_1_both'",
    finds: [
      "one generation | ws_1 | ws_1_both | 1 | 2",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 2 answered, 1 failed, 2+14 tokens, " +
        "0 cached, 600050 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "a charge of an earlier month that is not the ledger's",
    sql: "update generations set credits_micro = credits_micro + 1 where request_id = 'ws_1_march'",
    finds: [
      "charge = generation | ws_1 | ws_1_march | 0.000002 | 0.000001",
      "usage by minute | ws_1 | key_1 from 2026-03-20 00:00:00+00 | 1 answered, 0 failed, 1+7 tokens, " +
        "0 cached, 2 micro | 1 answered, 0 failed, 1+7 tokens, 0 cached, 1 micro",
    ],
  },
  {
    what: "a generation that was settled on the first day that is kept",
    sql: "delete from generations where request_id = 'ws_1_old'",
    finds: [
      "usage by minute | ws_1 | key_1 from 2026-03-01 00:00:00+00 |  | 1 answered, 0 failed, 1+7 " +
        "tokens, 0 cached, 300000 micro",
    ],
  },
  {
    what: "a charge for a stream that failed",
    sql: "update generations set outcome = 'internal', streamed = true where request_id = 'ws_1_both'",
    finds: [
      "uncharged outcome | ws_1 | ws_1_both | 0 | 0.6",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 1 answered, 1 failed, 1+7 tokens, " +
        "0 cached, 600050 micro | 2 answered, 0 failed, 2+14 tokens, 0 cached, 600050 micro",
    ],
  },
  {
    what: "no usage at all",
    sql: "delete from usage where workspace_id = 'ws_1'",
    finds: [
      "usage = ledger | ws_1 |  | 1.400061 | 0",
      "usage by minute | ws_1 | key_1 from 2026-03-01 00:00:00+00 | 1 answered, 0 failed, 1+7 tokens, " +
        "0 cached, 300000 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-03-20 00:00:00+00 | 1 answered, 0 failed, 1+7 tokens, " +
        "0 cached, 1 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-05-05 01:08:00+00 | 1 answered, 1 failed, 1+7 tokens, " +
        "1 cached, 500000 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-05-06 00:00:00+00 | 2 answered, 0 failed, 2+14 tokens, " +
        "0 cached, 600050 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-05-06 06:08:00+00 | 0 answered, 1 failed, 0+0 tokens, " +
        "0 cached, 0 micro | none",
      "usage by minute | ws_1 | key_1 from 2026-05-06 07:08:00+00 | 2 answered, 1 failed, 2+14 tokens, " +
        "0 cached, 10 micro | none",
    ],
  },
  {
    what: "periods that are a month behind",
    sql:
      "update periods set at = at - interval '1 month', clock = clock - interval '1 month' where " +
      "workspace_id = 'ws_1'",
    finds: [
      "spent in period = ledger | ws_1 | day | 0 | 0.401061",
      "spent in period = ledger | ws_1 | minute | 0 | 0.00001",
      "spent in period = ledger | ws_1 | month | 0 | 0.401061",
      "spent in period = ledger | ws_1 | week | 0 | 0.401061",
    ],
  },
];
