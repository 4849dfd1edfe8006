-- Models that operators have taken out of service. Replicas follow the channel `disabled_models`.
create table disabled_models (
  model text collate "C" primary key,           -- name in the catalogue
  reason text not null,                         -- may be empty
  actor_id text not null,
  disabled_at timestamptz not null default clock_timestamp()
);
