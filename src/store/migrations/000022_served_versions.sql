-- Which versions of each model answer, so that what was learned of one does not count for another.
create table served_versions (
  model text collate "C" not null,              -- name in the catalogue
  entry text not null,                          -- fingerprint of its entry
  served text not null,                         -- fingerprint of the entry with the version, as in `model_duels`
  noted_at timestamptz not null,                -- the version that was noted last is the current one
  primary key (model, entry, served)
);
