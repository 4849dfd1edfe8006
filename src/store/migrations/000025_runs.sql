-- How answers were made: what `generations` does not say. No prompt, draft or answer is stored. A crash of the server
-- may lose the last ones.

-- Kept for CHORUS_RUN_RETENTION_DAYS, and partitioned by day (src/store/partitions.ts).
create table runs (
  workspace_id text not null,
  began_at timestamptz not null,                -- the time in the identifier
  id text not null,                             -- gen_…
  record json not null,                         -- see src/runs/record.ts
  primary key (workspace_id, began_at, id)
) partition by range (began_at);
create table runs_rest partition of runs default;

-- Number of runs that a workspace has left on a day (UTC).
create table run_counts (
  workspace_id text not null,
  day date not null,
  runs bigint not null,
  primary key (workspace_id, day)
);
