-- Calls of models by hour (UTC), as replicas report them every ten seconds. A crash loses those of the last seconds.
create table model_hours (
  start timestamptz not null,
  model text collate "C" not null,              -- name in the catalogue
  calls bigint not null,                        -- that have ended, retries included
  failed_calls bigint not null,
  cost_usd double precision not null,           -- by the prices of the catalogue
  primary key (start, model)
);
