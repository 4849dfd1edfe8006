-- How models fared against each other where their drafts of one answer were graded and exactly one was right.

-- Sums over all workspaces: at most one row for two entries of the catalogue and an ability. No text is stored.
create table model_duels (
  one text collate "C" not null,                -- name in the catalogue; it sorts before `other`
  one_fingerprint text not null,                -- of its entry: another model under the same name counts anew
  other text collate "C" not null,
  other_fingerprint text not null,
  ability text not null,
  wins bigint not null,                         -- `one` was right and `other` wrong
  losses bigint not null,                       -- `other` was right and `one` wrong
  primary key (one, one_fingerprint, other, other_fingerprint, ability)
);

alter table outcomes add column grades boolean[]; -- of the groups of drafts, by the referee; null: it has not graded

-- What the referee has spent on each day (UTC), the highest price of running calls included.
create table referee_days (
  day date primary key,
  nano_usd bigint not null
);
