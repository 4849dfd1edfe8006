-- People who sign in through an OpenID provider, and what they may do in workspaces. These tables are small.

create table people (
  id text primary key,                          -- per_…
  issuer text not null,
  subject text not null,                        -- the provider's identifier of the person
  name text not null,                           -- as the provider claims it; may be empty
  email text not null,                          -- the same
  seen_at timestamptz not null,                 -- when the provider last confirmed the person
  unique (issuer, subject)
);

create table members (
  workspace_id text not null references workspaces (id) on delete cascade,
  person_id text not null references people (id) on delete cascade,
  role text not null check (role in ('owner', 'developer', 'billing', 'viewer')),
  by_group boolean not null,                    -- whether a group of the provider gives the role
  created_at timestamptz not null,
  primary key (workspace_id, person_id)
);
create index members_person on members (person_id);

-- Links that make one person a member.
create table invitations (
  workspace_id text not null references workspaces (id) on delete cascade,
  id text not null,                             -- inv_…
  secret_hash bytea not null unique,            -- SHA-256; the secret is not stored
  role text not null check (role in ('owner', 'developer', 'billing', 'viewer')),
  note text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (workspace_id, id)
);

-- Browsers in which a person is signed in.
create table person_sessions (
  secret_hash bytea primary key,                -- SHA-256; the secret is not stored
  person_id text not null references people (id) on delete cascade,
  workspace_id text references workspaces (id) on delete set null, -- the one that is shown; null: none
  operator boolean not null,
  tokens bytea not null,                        -- of the provider, encrypted under a key derived from the secret
  confirmed_at timestamptz not null,            -- when the provider last confirmed the person
  retry_at timestamptz not null,                -- before this time, no replica asks the provider again
  asking boolean not null default false,        -- whether a replica asks the provider, until retry_at at most
  created_at timestamptz not null,
  used_at timestamptz not null,                 -- rounded to about a minute
  expires_at timestamptz not null
);
create index person_sessions_person on person_sessions (person_id, created_at);
create index person_sessions_expiry on person_sessions (expires_at);

alter table api_keys
  add column created_by text,                   -- per_… or tok_…; null: not known
  add column person_id text references people (id), -- the member with whom the key ends; null: nobody
  add column playground boolean not null default false; -- true: that member's key of the playground; has no secret
create unique index api_keys_playground on api_keys (workspace_id, person_id) where playground;
create index api_keys_person on api_keys (person_id, workspace_id) where person_id is not null;

alter table audit
  drop constraint audit_actor_kind_check,
  add constraint audit_actor_kind_check check (actor_kind in ('operator', 'owner', 'member', 'service'));

-- Who set a cap, so that developers change only their own; null: not known.
alter table caps add column created_by text;
