-- Links that sign in one browser, once, without an owner token.
create table sign_in_links (
  secret_hash bytea primary key,                -- SHA-256; the secret is not stored
  workspace_id text not null references workspaces (id) on delete cascade,
  expires_at timestamptz not null
);
create index sign_in_links_workspace on sign_in_links (workspace_id);

-- A session that a link opened. Its `token_hash` is that of the link, so it does not end with an owner token.
alter table sessions add column by_link boolean not null default false;
