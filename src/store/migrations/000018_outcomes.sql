-- How good answers were, by their callers' word, and what is known of the drafts that made them. No text is stored.

-- Null for requests of earlier versions.
alter table generations
  add column ability text,                      -- what the prompt needed of a model, as in the catalogue's `accuracy`
  add column fingerprint text;                  -- of the catalogue's entry of `model`

-- One row for each answer that was drafted by several models or can be compared, and for each recorded outcome. Kept
-- for seven days, and partitioned by day (src/store/partitions.ts).
create table outcomes (
  workspace_id text not null,
  created_at timestamptz not null,              -- of the generation
  id text not null,                             -- gen_…
  drafts json,                                  -- see src/outcomes/drafts.ts; null: one model answered, in prose
  score double precision,                       -- 0 to 1; null: no outcome was recorded
  verdicts boolean[],                           -- of the groups of drafts, by the expected answer; null: not known
  recorded_at timestamptz,
  primary key (workspace_id, created_at, id)
) partition by range (created_at);
create table outcomes_rest partition of outcomes default;

-- Sums over the recorded outcomes of all workspaces.
create table model_outcomes (
  model text not null,                          -- name in the catalogue
  fingerprint text not null,                    -- of its entry: another model under the same name counts anew
  ability text not null,
  n bigint not null,                            -- judged answers and drafts
  score numeric not null,                       -- sum of their scores
  wins bigint not null,                         -- right where drafts disagreed
  losses bigint not null,                       -- wrong where drafts disagreed
  primary key (model, fingerprint, ability)
);
