-- Workspaces, keys and operators are small, read by every replica and written by people. Where the schema is spread over many databases,
-- these three are kept whole on each; what grows with use leads with the workspace in its primary key and is spread by it.

create table workspaces (
  id text primary key,                          -- ws_…
  name text not null unique,
  kind text not null default 'personal' check (kind in ('personal', 'organization')),
  tier text not null default 'free',
  created_at timestamptz not null default now()
);

create table api_keys (
  workspace_id text not null references workspaces (id) on delete cascade,
  id text not null unique,                      -- key_…
  secret_hash bytea not null unique,            -- SHA-256; the secret itself is not kept
  prefix text not null,                         -- the first characters, so that people can tell keys apart
  name text not null default '',
  scopes text[] not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz,                       -- null: never
  revoked_at timestamptz,                       -- null: not revoked
  primary key (workspace_id, id)
);

-- Pages of keys, newest first.
create index api_keys_page on api_keys (created_at, id);

create table operator_tokens (
  secret_hash bytea primary key,                -- SHA-256
  created_at timestamptz not null default now()
);

-- One row for each admitted request, written when it is settled. No prompts and no answers. The time stands in the primary key so that
-- the table can be split by time, and old rows dropped with their part.
create table generations (
  workspace_id text not null,
  created_at timestamptz not null,              -- when the request was admitted
  id text not null,                             -- gen_…
  request_id text not null,                     -- req_…
  key_id text not null,
  streamed boolean not null,
  shape text not null,                          -- text, extract, json_schema
  effort text not null,                         -- as asked: auto, low, medium, high
  level text not null,                          -- as applied: low, medium, high
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,                -- the part of input_tokens that was served from a vendor's cache
  credits_micro bigint not null,                -- charged, in millionths of a credit
  outcome text not null,                        -- ok, cut_short, caller_gone, or the kind of the failure
  finish_reason text,                           -- stop, length; null when there was no answer
  latency_ms integer not null,
  model text,                                   -- catalogue name of the model that answered; for operators only
  primary key (workspace_id, created_at, id)
);
