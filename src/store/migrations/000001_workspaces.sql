-- Workspaces, the secrets that open them, and the audit. These tables are small. Where the schema is distributed over
-- several databases, workspaces, keys, operator tokens, owner tokens and sessions are replicated to each of them
-- (reference tables).

create table workspaces (
  id text primary key,                          -- ws_…
  name text not null unique,
  kind text not null default 'personal' check (kind in ('personal', 'organization')),
  created_at timestamptz not null default now()
);

create table api_keys (
  workspace_id text not null references workspaces (id) on delete cascade,
  id text not null unique,                      -- key_…
  secret_hash bytea not null unique,            -- SHA-256; the secret is not stored
  prefix text not null,                         -- first characters of the secret, shown in lists
  name text not null default '',
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,                       -- null: never
  revoked_at timestamptz,                       -- null: not revoked
  console boolean not null default false,       -- true: the key of the console's playground; has no secret
  primary key (workspace_id, id)
);
create unique index api_keys_console on api_keys (workspace_id) where console;

-- Pages of all keys, newest first; pages of the keys of one workspace; search by name and by prefix.
create index api_keys_page on api_keys (created_at, id);
create index api_keys_list on api_keys (workspace_id, created_at, id);
create index api_keys_name on api_keys (workspace_id, lower(name) text_pattern_ops);
create index api_keys_prefix on api_keys (workspace_id, prefix text_pattern_ops);

create table operator_tokens (
  secret_hash bytea primary key,                -- SHA-256
  created_at timestamptz not null default now()
);

-- One token for each workspace; a new one replaces the old one.
create table owner_tokens (
  workspace_id text primary key references workspaces (id) on delete cascade,
  secret_hash bytea not null unique,            -- SHA-256; the secret is not stored
  created_at timestamptz not null default now(),
  expires_at timestamptz                        -- null: never
);

-- Browsers that are signed in to the console.
create table sessions (
  secret_hash bytea primary key,                -- SHA-256; the secret is not stored
  workspace_id text not null references workspaces (id) on delete cascade,
  token_hash bytea not null,                    -- of the owner token that opened it, with which it ends
  created_at timestamptz not null,
  used_at timestamptz not null,                 -- rounded to about a minute
  expires_at timestamptz not null
);
create index sessions_workspace on sessions (workspace_id, created_at);
create index sessions_expiry on sessions (expires_at);

-- Changes that operators, owners and the service made, without secrets. Rows are only inserted, and are kept when the
-- workspace is deleted.
create sequence audit_id;
create table audit (
  workspace_id text not null,
  at timestamptz not null default clock_timestamp(),
  id bigint not null default nextval('audit_id'),
  actor_kind text not null check (actor_kind in ('operator', 'owner', 'service')),
  actor_id text not null,                       -- tok_…, from the token's hash; or why the service acted
  action text not null,                         -- such as key.create
  details jsonb not null default '{}',
  primary key (workspace_id, at, id)
);
