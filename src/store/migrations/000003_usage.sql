-- Records and sums of requests. Partitioned by month (src/store/partitions.ts), so that old rows are dropped with their
-- partition and a query reads only the months it asks for. The `…_rest` partitions hold rows whose month has no
-- partition. There is one level of partitions, because Citus does not support partitions of partitions.

-- One row for each admitted request, written when it is settled. It contains no prompt and no answer. The primary key
-- contains created_at because Postgres requires the partition column in it.
create table generations (
  workspace_id text not null,
  created_at timestamptz not null,              -- when the request was admitted
  id text not null,                             -- gen_…
  request_id text not null,                     -- req_…
  key_id text not null,
  streamed boolean not null,
  shape text not null,                          -- text, extract, json_schema
  effort text not null,                         -- as requested: auto, low, medium, high
  level text not null,                          -- as applied: low, medium, high
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,                -- the part of input_tokens that was served from a vendor's cache
  credits_micro bigint not null,                -- charged, in millionths of a credit
  outcome text not null,                        -- ok, cut_short, caller_gone, or the kind of the failure
  finish_reason text,                           -- stop, length; null when there was no answer
  latency_ms integer not null,
  model text,                                   -- catalogue name of the model that answered; for operators only
  -- What the calls of models used; for operators only, not part of the charge. Null when unknown.
  model_calls integer,                          -- retries included
  model_input_tokens bigint,
  model_output_tokens bigint,
  cost_usd numeric,                             -- of the calls whose model has a price in the catalogue
  primary key (workspace_id, created_at, id)
) partition by range (created_at);
create table generations_rest partition of generations default;

-- Requests of one key; requests that did not end with ok. The key leads its index, because the planner could prefer an
-- index that leads with the workspace to the primary key for statements that name no key.
create index generations_key on generations (key_id, workspace_id, created_at);
create index generations_failed on generations (workspace_id, created_at, id) include (outcome, streamed)
  where outcome <> 'ok';

-- Usage by minute, hour and day (UTC). Minutes are partitioned by month and dropped when they are old. Hours and days
-- are few, and kept. The bounds are values rather than maxvalue: with maxvalue in a bound of several columns, Postgres
-- 18 wrongly skips the default partition in a search for a range of the last column.
create table usage (
  workspace_id text not null,
  unit text not null check (unit in ('minute', 'hour', 'day')),
  start timestamptz not null,
  key_id text not null,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  credits_micro bigint not null,
  primary key (workspace_id, unit, start, key_id)
) partition by range (unit, start);
create table usage_day partition of usage for values from ('day', '-infinity') to ('hour', '-infinity');
create table usage_hour partition of usage for values from ('hour', '-infinity') to ('minute', '-infinity');
create table usage_minute_rest partition of usage default;

-- Usage of one key, and when it was last used. All columns of the index are constant, so updates of a row do not change
-- it.
create index usage_key on usage (key_id, workspace_id, unit, start);
