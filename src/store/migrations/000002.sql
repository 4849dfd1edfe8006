-- Money and limits. Whatever a request touches is found by its workspace, which leads in every primary key, so that the schema spreads over
-- many databases by workspace. The ledger is the truth; the figures of `accounts` follow from it and stand there so that admission is quick.

-- Tiers of the configuration, written at each start. Small, and kept whole on each database.
create table tiers (
  name text primary key,
  place integer not null,                       -- a workspace is in the last tier whose threshold it has reached
  threshold_micro bigint,                       -- total ever purchased from which the tier applies; null: only by hand
  limits jsonb not null                         -- limit name → number; a limit that is not named does not exist
);

create table accounts (
  workspace_id text primary key,
  granted_micro bigint not null default 0 check (granted_micro >= 0),
  purchased_micro bigint not null default 0 check (purchased_micro >= 0),
  held_micro bigint not null default 0,         -- the worst case of what runs
  purchased_total_micro bigint not null default 0,
  running integer not null default 0 check (running >= 0),
  tier_override text,                           -- given by an operator; null: by what was purchased
  overrides jsonb not null default '{}',        -- limits given by an operator: name → number, or null for none
  tier text not null default 'free',            -- in force
  limits jsonb not null default '{}',           -- in force
  spend_limits jsonb not null default '{}',     -- day, week, month → millionths, given by the owner
  check (held_micro between 0 and granted_micro + purchased_micro)
) with (fillfactor = 50);

-- What the minute, the day, the week and the month (the four items of each array, in this order; UTC) in which `at` lies have seen so far.
create table periods (
  workspace_id text primary key,
  at timestamptz not null,
  requests bigint[] not null,
  input_tokens bigint[] not null,
  output_tokens bigint[] not null,
  spent_micro bigint[] not null                 -- purchased credit
) with (fillfactor = 50);

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

-- Replicas say here that they live; the leases of one that has died are released by one that claims that.
create table replicas (
  id text primary key,
  beat_at timestamptz not null,
  claimed_at timestamptz
);

-- Every movement of credit, in millionths. Rows are only ever added.
create sequence ledger_id;
create table ledger (
  workspace_id text not null,
  at timestamptz not null,
  id bigint not null default nextval('ledger_id'),
  kind text not null check (kind in ('grant', 'purchase', 'adjustment', 'hold', 'settlement', 'release')),
  reference text not null,                      -- the operator's, of a booking; the request's identifier, of everything else
  granted_micro bigint not null default 0,
  purchased_micro bigint not null default 0,
  held_micro bigint not null default 0,
  primary key (workspace_id, at, id)
) partition by range (at);
create table ledger_rest partition of ledger default;

-- Bookings by reference, so that none is made twice.
create table bookings (
  workspace_id text not null,
  reference text not null,
  kind text not null,
  amount_micro bigint not null,
  at timestamptz not null,
  primary key (workspace_id, reference)
);

-- Answers of requests that carry an idempotency key, for 24 hours. The answer is encrypted with the key itself, of which only the hash is here.
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

-- Use by minute, hour and day (UTC), for metrics over any range.
create table usage (
  workspace_id text not null,
  unit text not null check (unit in ('minute', 'hour', 'day')),
  start timestamptz not null,
  key_id text not null,
  requests bigint not null,
  failed_requests bigint not null,
  input_tokens bigint not null,
  output_tokens bigint not null,
  cached_tokens bigint not null,
  credits_micro bigint not null,
  primary key (workspace_id, unit, start, key_id)
) partition by range (start);
create table usage_rest partition of usage default;

-- Milliseconds from `at` until the period in which it lies is over, in UTC; weeks begin on Monday.
create function period_rest(unit text, at timestamptz) returns numeric language sql immutable as $$
  select round(extract(epoch from (date_trunc(unit, at at time zone 'UTC') + ('1 ' || unit)::interval) at time zone 'UTC' - at) * 1000, 3)
$$;

-- The figures of a workspace brought to the moment `at`: periods that are over begin anew. A clock that was set back by less than a minute,
-- as when another server takes over, does not begin an earlier period again.
create function periods_at(w text, at timestamptz) returns periods language plpgsql as $$
declare
  p periods%rowtype;
  units constant text[] := array['minute', 'day', 'week', 'month'];
begin
  select * into p from periods where workspace_id = w;
  if not found then
    return row (w, at, '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}')::periods;
  end if;
  if p.at > at and p.at < at + interval '1 minute' then
    return p;
  end if;
  for u in 1..4 loop
    if date_trunc(units[u], p.at, 'UTC') <> date_trunc(units[u], at, 'UTC') then
      p.requests[u] := 0;
      p.input_tokens[u] := 0;
      p.output_tokens[u] := 0;
      p.spent_micro[u] := 0;
    end if;
  end loop;
  p.at := at;
  return p;
end $$;

-- The same as rows, for reading.
create function current_periods(w text, at timestamptz)
returns table (unit text, start timestamptz, requests bigint, input_tokens bigint, output_tokens bigint, spent_micro bigint)
language sql as $$
  select x.unit, date_trunc(x.unit, p.at, 'UTC'), x.requests, x.input, x.output, x.spent
  from periods_at(w, at) p,
       unnest(array['minute', 'day', 'week', 'month'], p.requests, p.input_tokens, p.output_tokens, p.spent_micro) as x (unit, requests, input, output, spent)
$$;

-- The functions below find rows by primary key whatever the statistics say of tables that are empty at one time and busy at another: a plan
-- that reads the table from end to end is good for none of them, and once made it may stay for as long as a connection lives.

-- Admits a batch of requests of one workspace, in their order, or says why not. A refused request changes nothing.
-- items: [{"request_id", "key_id", "input_tokens", "hold_micro", "key"?, "body"?}], key and body in hex. at: now, unless a test says otherwise.
-- Gives one object for each item: {} when admitted; {"response"} when it was answered before; else {"refusal", "limit"?, "retry_ms"?, "never"?},
-- the last for what no wait helps, because it would be refused if nothing else were used of the limit.
create function take_leases(w text, by_replica text, items jsonb, at timestamptz default null) returns jsonb language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  units constant text[] := array['minute', 'day', 'week', 'month'];
  a accounts%rowtype;
  p periods%rowtype;
  earlier idempotency%rowtype;
  item record;
  alive text[];
  most_requests bigint[];  most_input bigint[];  most_output bigint[];  most_spent bigint[];
  most_running bigint;
  refusal text;  which text;  retry numeric;  never boolean;
  tokens bigint := 0;                             -- input of what was admitted
  ids text[] := '{}';  holds bigint[] := '{}';  keys bytea[] := '{}';
  n int := 0;                                     -- admitted
  verdicts jsonb[] := '{}';
  u int;
begin
  select * into a from accounts where workspace_id = w for update;
  -- The time is taken after the lock, so that nobody's periods run backwards.
  p := periods_at(w, coalesce(at, clock_timestamp()));
  select array_agg(k.id) into alive from api_keys k
    where k.workspace_id = w and k.revoked_at is null and (k.expires_at is null or k.expires_at > p.at)
      and k.id = any (array(select i ->> 'key_id' from jsonb_array_elements(items) i));
  for u in 1..4 loop
    most_requests[u] := a.limits ->> ('requests_per_' || units[u]);
    most_input[u] := a.limits ->> ('input_tokens_per_' || units[u]);
    most_output[u] := a.limits ->> ('output_tokens_per_' || units[u]);
    most_spent[u] := a.spend_limits ->> units[u];
  end loop;
  most_running := a.limits ->> 'concurrent_requests';

  for item in select * from jsonb_to_recordset(items)
      as i (request_id text, key_id text, input_tokens bigint, hold_micro bigint, key text, body text) loop
    refusal := null;  which := null;  retry := null;  never := null;
    if a.workspace_id is null or (item.key_id = any (alive)) is not true then
      refusal := 'unauthenticated';
    end if;

    if refusal is null and item.key is not null then
      -- The time is compared afterwards, lest the index of expiries be searched, through all workspaces.
      select * into earlier from idempotency i where i.workspace_id = w and i.key = decode(item.key, 'hex');
      if found and earlier.expires_at > p.at then
        if earlier.body <> decode(item.body, 'hex') then
          refusal := 'idempotency_key_reused';
        elsif earlier.response is not null then
          verdicts := verdicts || jsonb_build_object('response', encode(earlier.response, 'base64'));
          continue;
        elsif earlier.request_id = any (ids) or exists (select from leases l where l.workspace_id = w and l.request_id = earlier.request_id) then
          refusal := 'idempotency_key_in_use';  retry := 1000;
        end if;
      end if;
    end if;

    -- The longest period first, so that the stated wait is the one that helps.
    foreach u in array array[4, 2, 1] loop
      exit when refusal is not null;
      which := case
        when p.requests[u] + n >= most_requests[u] then 'requests_per_'
        when p.input_tokens[u] + tokens + item.input_tokens > most_input[u] then 'input_tokens_per_'
        when p.output_tokens[u] >= most_output[u] then 'output_tokens_per_' end || units[u];
      if which is not null then
        refusal := 'rate_limited';  retry := period_rest(units[u], p.at);
        never := most_requests[u] < 1 or item.input_tokens > most_input[u] or most_output[u] < 1;
      end if;
    end loop;
    if refusal is null and a.running + n >= most_running then
      refusal := 'rate_limited';  which := 'concurrent_requests';  retry := 1000;  never := most_running < 1;
    end if;

    -- Granted credit is used first: what one request, or all that run, can cost above it is purchased. First what no wait for others helps.
    foreach u in array array[4, 3, 2] loop
      exit when refusal is not null;
      if p.spent_micro[u] + greatest(0, item.hold_micro - a.granted_micro) > most_spent[u] then
        refusal := 'spend_limit_reached';  retry := period_rest(units[u], p.at);
        never := item.hold_micro - a.granted_micro > most_spent[u];
      end if;
    end loop;
    if refusal is null and a.granted_micro + a.purchased_micro < item.hold_micro then
      refusal := 'insufficient_credit';
    end if;
    if refusal is null and (a.granted_micro + a.purchased_micro - a.held_micro < item.hold_micro
        or p.spent_micro[4] + greatest(0, a.held_micro + item.hold_micro - a.granted_micro) > most_spent[4]
        or p.spent_micro[3] + greatest(0, a.held_micro + item.hold_micro - a.granted_micro) > most_spent[3]
        or p.spent_micro[2] + greatest(0, a.held_micro + item.hold_micro - a.granted_micro) > most_spent[2]) then
      refusal := 'rate_limited';  which := 'held_credit';  retry := 1000;
    end if;

    if refusal is not null then
      verdicts := verdicts || jsonb_strip_nulls(jsonb_build_object('refusal', refusal, 'limit', which, 'retry_ms', retry, 'never', nullif(never, false)));
      continue;
    end if;

    verdicts := verdicts || '{}'::jsonb;
    n := n + 1;
    tokens := tokens + item.input_tokens;
    a.held_micro := a.held_micro + item.hold_micro;
    ids := ids || item.request_id;  holds := holds || item.hold_micro;  keys := keys || decode(item.key, 'hex');
    if item.key is not null then
      insert into idempotency (workspace_id, key, body, request_id, expires_at)
        values (w, decode(item.key, 'hex'), decode(item.body, 'hex'), item.request_id, p.at + interval '24 hours')
        on conflict (workspace_id, key) do update
          set body = excluded.body, request_id = excluded.request_id, response = null, expires_at = excluded.expires_at;
    end if;
  end loop;

  if n > 0 then
    for u in 1..4 loop
      p.requests[u] := p.requests[u] + n;
      p.input_tokens[u] := p.input_tokens[u] + tokens;
    end loop;
    insert into leases (workspace_id, request_id, replica, hold_micro, idempotency_key, taken_at)
      select w, x.id, by_replica, x.hold, x.key, p.at from unnest(ids, holds, keys) as x (id, hold, key);
    insert into ledger (workspace_id, at, kind, reference, held_micro)
      select w, p.at, 'hold', x.id, x.hold from unnest(ids, holds) as x (id, hold);
    update accounts set held_micro = a.held_micro, running = a.running + n where workspace_id = w;
    insert into periods values (p.*) on conflict (workspace_id) do update
      set at = excluded.at, requests = excluded.requests, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens, spent_micro = excluded.spent_micro;
  end if;
  return to_jsonb(verdicts);
end $$;

-- Ends a batch of requests of one workspace: the hold is replaced by what was used. An item that was settled before changes nothing.
-- items: rows of `generations` (without the workspace; credits_micro is the price), and for a request with an idempotency key "key" and
-- "body" in hex, and "response" in base64 if there is an answer to keep. No request may be in it twice.
-- Gives {request_id: charge}, in millionths and as text, for those of which something else than the price was charged.
create function settle_leases(w text, items jsonb, at timestamptz default null) returns jsonb language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  units constant text[] := array['minute', 'day', 'week', 'month'];
  a accounts%rowtype;
  p periods%rowtype;
  item record;
  held jsonb;                                     -- request_id → hold
  n int;  freed bigint;  charged bigint;  granted bigint;  tokens bigint;
  others jsonb;                                   -- what is given
  known bigint;
  late jsonb := '[]';
begin
  select * into a from accounts where workspace_id = w for update;
  if not found then
    return (select jsonb_object_agg(i ->> 'request_id', '0') from jsonb_array_elements(items) i);
  end if;
  p := periods_at(w, coalesce(at, clock_timestamp()));
  with gone as (
    delete from leases where workspace_id = w and request_id = any (array(select i ->> 'request_id' from jsonb_array_elements(items) i))
    returning request_id, hold_micro)
  select coalesce(jsonb_object_agg(request_id, hold_micro), '{}') into held from gone;

  if held <> '{}' then
    with settled as materialized (
      -- Granted credit is used first, in the order of the batch.
      select *, least(charge, greatest(0, a.granted_micro - sum(charge) over (order by place) + charge))::bigint as granted
      from (select *, (held ->> request_id)::bigint as hold, least(price, (held ->> request_id)::bigint) as charge,
              outcome in ('ok', 'cut_short') or (outcome = 'caller_gone' and streamed) as answered
            from rows from (jsonb_to_recordset(items) as (id text, request_id text, created_at timestamptz, key_id text, streamed boolean,
                shape text, effort text, level text, input_tokens bigint, output_tokens bigint, cached_tokens bigint, credits_micro bigint,
                outcome text, finish_reason text, latency_ms integer, model text)) with ordinality
              as i (id, request_id, created_at, key_id, streamed, shape, effort, level, input_tokens, output_tokens, cached_tokens, price,
                outcome, finish_reason, latency_ms, model, place)
            where held ? request_id) i
    ), booked as (
      insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro, held_micro)
      select w, p.at, case when charge > 0 then 'settlement' else 'release' end, request_id, -s.granted, s.granted - charge, -hold
      from settled s
    ), recorded as (
      insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens, output_tokens,
        cached_tokens, credits_micro, outcome, finish_reason, latency_ms, model)
      select w, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens, output_tokens,
        cached_tokens, charge, outcome, finish_reason, latency_ms, model
      from settled
    ), used as (
      insert into usage as old (workspace_id, unit, start, key_id, requests, failed_requests, input_tokens, output_tokens, cached_tokens, credits_micro)
      select w, x.unit, date_trunc(x.unit, created_at, 'UTC'), key_id, count(*) filter (where answered), count(*) filter (where not answered),
        coalesce(sum(input_tokens) filter (where answered), 0), coalesce(sum(output_tokens) filter (where answered), 0),
        coalesce(sum(cached_tokens) filter (where answered), 0), sum(charge)
      from settled, unnest(array['minute', 'hour', 'day']) as x (unit)
      group by 2, 3, 4
      on conflict (workspace_id, unit, start, key_id) do update set
        requests = old.requests + excluded.requests, failed_requests = old.failed_requests + excluded.failed_requests,
        input_tokens = old.input_tokens + excluded.input_tokens, output_tokens = old.output_tokens + excluded.output_tokens,
        cached_tokens = old.cached_tokens + excluded.cached_tokens, credits_micro = old.credits_micro + excluded.credits_micro
    )
    select count(*), sum(hold), sum(charge), sum(s.granted), sum(output_tokens), jsonb_object_agg(request_id, charge::text) filter (where charge <> price)
      into n, freed, charged, granted, tokens, others from settled s;
    update accounts set granted_micro = granted_micro - granted, purchased_micro = purchased_micro - charged + granted,
        held_micro = held_micro - freed, running = running - n
      where workspace_id = w returning * into a;
    for u in 1..4 loop
      p.output_tokens[u] := p.output_tokens[u] + tokens;
      p.spent_micro[u] := p.spent_micro[u] + charged - granted;
    end loop;
    insert into periods values (p.*) on conflict (workspace_id) do update set at = excluded.at, requests = excluded.requests,
      input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, spent_micro = excluded.spent_micro;
  end if;
  others := coalesce(others, '{}');

  for item in select * from jsonb_to_recordset(items)
      as i (request_id text, id text, created_at timestamptz, credits_micro bigint, key text, body text, response text)
      where i.key is not null or not held ? i.request_id loop
    if held ? item.request_id then
      if item.response is null then
        delete from idempotency i where i.workspace_id = w and i.key = decode(item.key, 'hex') and i.request_id = item.request_id;
      else
        update idempotency i set response = decode(item.response, 'base64')
          where i.workspace_id = w and i.key = decode(item.key, 'hex') and i.request_id = item.request_id;
      end if;
      continue;
    end if;
    select g.credits_micro into known from generations g where g.workspace_id = w and g.created_at = item.created_at and g.id = item.id;
    if found then
      others := others || jsonb_build_object(item.request_id, known::text);
      continue;
    end if;
    -- Its replica was taken for dead and its lease released, but it did answer. So it takes a lease after all, for as much of its price as
    -- balance and spend limits leave; for nothing when another request has the same idempotency key by now, as a key is charged once.
    known := greatest(0, least(item.credits_micro, a.granted_micro - a.held_micro + least(a.purchased_micro,
      (a.spend_limits ->> 'day')::bigint - p.spent_micro[2], (a.spend_limits ->> 'week')::bigint - p.spent_micro[3],
      (a.spend_limits ->> 'month')::bigint - p.spent_micro[4])));
    if item.response is not null then
      insert into idempotency (workspace_id, key, body, request_id, expires_at)
        values (w, decode(item.key, 'hex'), decode(item.body, 'hex'), item.request_id, item.created_at + interval '24 hours')
        on conflict (workspace_id, key) do nothing;
    end if;
    if exists (select from idempotency i where i.workspace_id = w and i.key = decode(item.key, 'hex') and i.request_id <> item.request_id) then
      known := 0;
    end if;
    insert into leases (workspace_id, request_id, replica, hold_micro, taken_at) values (w, item.request_id, '', known, p.at);
    insert into ledger (workspace_id, at, kind, reference, held_micro) values (w, p.at, 'hold', item.request_id, known);
    update accounts set held_micro = held_micro + known, running = running + 1 where workspace_id = w returning * into a;
    late := late || jsonb_build_array(item.request_id);
  end loop;
  if late <> '[]' then
    others := others || settle_leases(w, (select jsonb_agg(i) from jsonb_array_elements(items) i where late ? (i ->> 'request_id')), p.at);
  end if;
  return others;
end $$;

-- Releases leases of requests that nobody runs any more, uncharged; those that have ended meanwhile are left alone. Gives how many it released.
create function release_leases(w text, ids text[], at timestamptz default null) returns integer language plpgsql
set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  t timestamptz;
  n int;  freed bigint;
begin
  perform from accounts where workspace_id = w for update;
  t := coalesce(at, clock_timestamp());
  with gone as (
    delete from leases where workspace_id = w and request_id = any (ids) returning *
  ), booked as (
    insert into ledger (workspace_id, at, kind, reference, held_micro) select w, t, 'release', request_id, -hold_micro from gone
  ), forgotten as (
    delete from idempotency where workspace_id = w and key = any (array(select idempotency_key from gone)) and request_id = any (ids)
  )
  select count(*), sum(hold_micro) into n, freed from gone;
  if n > 0 then
    update accounts set held_micro = held_micro - freed, running = running - n where workspace_id = w;
  end if;
  return n;
end $$;
