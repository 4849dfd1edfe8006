-- For whom requests are made: end users and tags.

-- Null for requests without them, and for those of earlier versions.
alter table generations
  add column end_user text,
  add column tags jsonb;                        -- values by name

alter table api_keys
  add column fixed_tags jsonb,                  -- null: none
  add column forbids_tags boolean not null default false;

-- Usage of end users and tags by minute, hour and day (UTC), in the same partitions as `usage`. A request counts for
-- its user and for each of its tags.
create table usage_subjects (
  workspace_id text not null,
  unit text not null check (unit in ('minute', 'hour', 'day')),
  start timestamptz not null,
  subject text collate "C" not null,            -- user:ID or tag:NAME=VALUE
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  credits_micro bigint not null,
  primary key (workspace_id, unit, start, subject)
) partition by range (unit, start);
create table usage_subjects_day partition of usage_subjects
  for values from ('day', '-infinity') to ('hour', '-infinity');
create table usage_subjects_hour partition of usage_subjects
  for values from ('hour', '-infinity') to ('minute', '-infinity');
create table usage_subjects_minute_rest partition of usage_subjects default;
