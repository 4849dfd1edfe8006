-- Credit and limits. Every table that a request reads or writes has the workspace first in its primary key, so that it
-- can be distributed by workspace. The ledger is the source of truth. The figures in `accounts` are derived from it and
-- let admission read one row. check_books() compares the two. Amounts are in millionths of a credit (micro).

-- Tiers of the configuration, written at each start.
create table tiers (
  name text primary key,
  place integer not null,                       -- a workspace is in the last tier whose threshold it has reached
  threshold_micro bigint,                       -- total purchased for the tier; null: only an operator assigns it
  limits jsonb not null                         -- limit name → number; a limit that is absent does not apply
);
-- Applies until the configuration's tiers are written.
insert into tiers (name, place, threshold_micro, limits) values ('free', 0, 0, '{}');

create table accounts (
  workspace_id text primary key,
  granted_micro bigint not null default 0 check (granted_micro >= 0),
  purchased_micro bigint not null default 0 check (purchased_micro >= 0),
  held_micro bigint not null default 0,         -- sum of the holds of running requests
  purchased_total_micro bigint not null default 0,
  running integer not null default 0 check (running >= 0),
  tier_override text,                           -- set by an operator; null: the tier follows from purchased_total_micro
  overrides jsonb not null default '{}',        -- limits set by an operator: name → number, or null for no limit
  tier text not null default 'free',            -- in force
  limits jsonb not null default '{}',           -- in force
  spend_limits jsonb not null default '{}',     -- day, week, month → micro, set by the owner
  check (held_micro between 0 and granted_micro + purchased_micro)
) with (fillfactor = 50);

-- Counters of the minute, the day, the week and the month (the four items of each array, in this order; UTC) that
-- contain `at`.
create table periods (
  workspace_id text primary key,
  at timestamptz not null,
  requests bigint[] not null,
  input_tokens bigint[] not null,
  output_tokens bigint[] not null,
  spent_micro bigint[] not null                 -- purchased credit
) with (fillfactor = 50);

-- Requests that are running, each with its hold.
create table leases (
  workspace_id text not null,
  request_id text not null,
  replica text not null,
  hold_micro bigint not null,
  idempotency_key bytea,                        -- as in `idempotency`
  taken_at timestamptz not null,
  primary key (workspace_id, request_id)
);
create index leases_replica on leases (replica);

-- Heartbeats of replicas. Another replica claims a dead one, and then releases its leases.
create table replicas (
  id text primary key,
  beat_at timestamptz not null,
  claimed_at timestamptz
);

-- Every movement of credit. Rows are only inserted. Partitioned by month (src/store/partitions.ts); ledger_rest holds
-- rows whose month has no partition.
create sequence ledger_id;
create table ledger (
  workspace_id text not null,
  at timestamptz not null,
  id bigint not null default nextval('ledger_id'),
  kind text not null check (kind in ('grant', 'purchase', 'adjustment', 'hold', 'settlement', 'release')),
  reference text not null,                      -- of a booking, the operator's reference; else the request's identifier
  granted_micro bigint not null default 0,
  purchased_micro bigint not null default 0,
  held_micro bigint not null default 0,
  primary key (workspace_id, at, id)
) partition by range (at);
create table ledger_rest partition of ledger default;

-- Bookings by reference: a reference is booked once.
create table bookings (
  workspace_id text not null,
  reference text not null,
  kind text not null,
  amount_micro bigint not null,
  at timestamptz not null,
  primary key (workspace_id, reference)
);

-- Responses to requests with an idempotency key, for 24 hours. A response is encrypted with the key, of which only the
-- hash is stored.
create table idempotency (
  workspace_id text not null,
  key bytea not null,                           -- SHA-256 of the caller's key
  body bytea not null,                          -- SHA-256 of the request
  request_id text not null,
  response bytea,                               -- null while the request runs
  expires_at timestamptz not null,
  primary key (workspace_id, key)
);
create index idempotency_expiry on idempotency (expires_at);
