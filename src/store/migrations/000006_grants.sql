-- What is reserved of each workspace for each replica (docs/decisions/grants.md). A replica admits requests against its
-- grant without a statement. Credit is in micro-credits. Requests and tokens are reserved for the minute, day, week and
-- month that contain `at`.
create sequence grant_id;
create table grants (
  workspace_id text not null,
  replica text not null,
  id bigint not null default nextval('grant_id'),
  seq bigint not null,                          -- of the last item
  at timestamptz not null,                      -- time of the windows at the last item
  credit_micro bigint not null check (credit_micro >= 0),
  held_micro bigint not null,                   -- the part that running requests hold, as far as the replica has said
  running bigint not null,                      -- concurrent requests
  running_now bigint not null,                  -- the part that runs
  requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  reply jsonb not null,                         -- to the last item, which is repeated when its answer is lost
  primary key (workspace_id, replica)
) with (fillfactor = 50);

-- The grant under which the request of an idempotency key runs.
alter table idempotency add column grant_id bigint;
