-- Browsers that are signed in to the operator's side of the console.
create table operator_sessions (
  secret_hash bytea primary key,                -- SHA-256; the secret is not stored
  token_hash bytea not null,                    -- of the operator token that opened it, with which it ends
  created_at timestamptz not null,
  used_at timestamptz not null,                 -- rounded to about a minute
  expires_at timestamptz not null
);
create index operator_sessions_expiry on operator_sessions (expires_at);
