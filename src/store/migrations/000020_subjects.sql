-- For whom requests are made: end users and tags.

-- Null for requests without them, and for those of earlier versions.
alter table generations
  add column end_user text,
  add column tags jsonb;                        -- values by name

alter table api_keys
  add column fixed_tags jsonb,                  -- null: none
  add column forbids_tags boolean not null default false;
