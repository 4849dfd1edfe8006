-- What is reserved for requests of capped subjects that a replica admits by itself (docs/decisions/caps.md). A row ends
-- with its grant. Requests and tokens are reserved for the minute, day, week and month that contain `at`.
create table subject_grants (
  workspace_id text not null,
  subject text collate "C" not null,
  grant_id bigint not null,
  at timestamptz not null,
  credit_micro bigint not null,
  held_micro bigint not null,                   -- of requests that run, at the last report
  running bigint not null,                      -- concurrent requests
  running_now bigint not null,                  -- of these, those that ran at the last report
  requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  has_idle boolean not null,                    -- whether it may have more than running requests need
  primary key (workspace_id, subject, grant_id)
) with (fillfactor = 50);
create index subject_grants_grant on subject_grants (workspace_id, grant_id);

-- What an item says of the headroom of subjects; see functions/append_settlements.sql. Null: nothing.
alter table settlement_log add column subjects json;
