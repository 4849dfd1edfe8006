-- The console: sessions of owners, a key for its playground, and indexes for what people look up.

-- Signed-in browsers. Small, as owners are; kept whole on each database, as their tokens are.
create table sessions (
  secret_hash bytea primary key,                -- SHA-256; the secret itself is not kept
  workspace_id text not null references workspaces (id) on delete cascade,
  token_hash bytea not null,                    -- of the owner token that opened it, with which it ends
  created_at timestamptz not null,
  used_at timestamptz not null,                 -- to the minute
  expires_at timestamptz not null
);
create index sessions_workspace on sessions (workspace_id, created_at);
create index sessions_expiry on sessions (expires_at);

-- The key under which a workspace's requests from the playground count; it has no secret.
alter table api_keys add column console boolean not null default false;
create unique index api_keys_console on api_keys (workspace_id) where console;

-- Pages of the keys of one workspace, and the search for them.
create index api_keys_list on api_keys (workspace_id, created_at, id);
create index api_keys_name on api_keys (workspace_id, lower(name) text_pattern_ops);
create index api_keys_prefix on api_keys (workspace_id, prefix text_pattern_ops);

-- What one key used, and when it was last used: its columns never change, so that updates leave it alone. Requests of one key, and those that
-- did not go well. All three cost a settlement 4 µs of 78 at most. The key comes first because no index that leads with the workspace may look as good
-- as the primary key to a statement that names no key.
create index usage_key on usage (key_id, workspace_id, unit, start);
create index generations_key on generations (key_id, workspace_id, created_at);
create index generations_failed on generations (workspace_id, created_at, id) include (outcome, streamed) where outcome <> 'ok';
