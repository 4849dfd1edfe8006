-- The text of requests, of workspaces that keep it: prompts, drafts and answers, encrypted with a key of the operator,
-- which is not in the database.

alter table workspaces
  add column run_text_days integer              -- null: no text is kept
    check (run_text_days between 1 and 30);
alter table api_keys
  add column forbids_text boolean not null default false; -- true: the text of its requests is never kept

-- Partitioned by day; a partition is dropped after the longest time, rows are deleted after that of their workspace
-- (src/store/partitions.ts).
create table run_texts (
  workspace_id text not null,
  began_at timestamptz not null,                -- the time in the identifier
  id text not null,                             -- gen_…
  key_name text not null,                       -- of the operator's key; see src/runs/text-keys.ts
  sealed bytea not null,                        -- see src/runs/text.ts
  primary key (workspace_id, began_at, id)
) partition by range (began_at);
-- Encrypted data cannot be compressed.
alter table run_texts alter column sealed set storage external;
create table run_texts_rest partition of run_texts default;

-- Bytes of text of a workspace on a day (UTC).
alter table run_counts add column text_bytes bigint not null default 0;
