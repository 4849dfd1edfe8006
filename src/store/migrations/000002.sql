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

-- What the current minute, day, week and month have seen. A row whose start is not the current one counts as empty.
create table periods (
  workspace_id text not null,
  unit text not null check (unit in ('minute', 'day', 'week', 'month')),
  start timestamptz not null,
  requests bigint not null default 0,
  input_tokens bigint not null default 0,
  output_tokens bigint not null default 0,
  spent_micro bigint not null default 0,        -- purchased credit
  primary key (workspace_id, unit)
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

-- Replicas say here that they live; the leases of one that has died are released.
create table replicas (
  id text primary key,
  beat_at timestamptz not null
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

-- Start of the current period of a unit, in UTC; weeks begin on Monday.
create function period_start(unit text, at timestamptz) returns timestamptz language sql immutable parallel safe as
$$ select date_trunc(unit, at, 'UTC') $$;

-- The current periods of a workspace, begun anew where a period is over.
create function current_periods(w text, at timestamptz) returns setof periods language sql as $$
  select w, u.unit, u.start, coalesce(p.requests, 0), coalesce(p.input_tokens, 0), coalesce(p.output_tokens, 0), coalesce(p.spent_micro, 0)
  from (select unit, date_trunc(unit, at, 'UTC') as start from unnest(array['minute', 'day', 'week', 'month']) as unit) as u
  left join periods p on p.workspace_id = w and p.unit = u.unit and p.start = u.start
$$;

-- Milliseconds until the period that began at `start` is over.
create function period_rest(unit text, start timestamptz, at timestamptz) returns numeric language sql immutable as $$
  select round(extract(epoch from (((start at time zone 'UTC') + ('1 ' || unit)::interval) at time zone 'UTC') - at) * 1000, 3)
$$;

-- Admits a batch of requests of one workspace, in their order, or says why not. A refused request changes nothing.
-- items: [{"request_id", "key_id", "input_tokens", "hold_micro", "key"?, "body"?}], key and body in hex. at: now, unless a test says otherwise.
-- Gives one object for each item: {} when admitted; {"refusal", "limit"?, "retry_ms"?} when not; {"response"} when it was answered before.
create function take_leases(w text, by_replica text, items jsonb, at timestamptz default null) returns jsonb language plpgsql as $$
declare
  a accounts%rowtype;
  earlier idempotency%rowtype;
  item record;
  t timestamptz;
  alive jsonb;
  units text[] := array['minute', 'day', 'week', 'month'];
  starts timestamptz[];
  requests bigint[];  input bigint[];  output bigint[];  spent bigint[];
  lim_requests bigint[];  lim_input bigint[];  lim_output bigint[];  lim_spent bigint[];
  lim_running bigint;
  refusal text;  which text;  retry numeric;
  exposure bigint;
  verdicts jsonb[] := '{}';
  ids text[] := '{}';  holds bigint[] := '{}';  idem bytea[] := '{}';
  admitted int := 0;
  u int;
begin
  select * into a from accounts where workspace_id = w for update;
  -- After the lock, so that periods never run backwards.
  t := coalesce(at, clock_timestamp());
  select jsonb_object_agg(k.id, true) into alive from api_keys k
    where k.workspace_id = w and k.revoked_at is null and (k.expires_at is null or k.expires_at > t)
      and k.id in (select i ->> 'key_id' from jsonb_array_elements(items) i);
  select array_agg(s.start order by s.n), array_agg(coalesce(p.requests, 0) order by s.n), array_agg(coalesce(p.input_tokens, 0) order by s.n),
         array_agg(coalesce(p.output_tokens, 0) order by s.n), array_agg(coalesce(p.spent_micro, 0) order by s.n),
         array_agg((a.limits ->> ('requests_per_' || s.unit))::bigint order by s.n),
         array_agg((a.limits ->> ('input_tokens_per_' || s.unit))::bigint order by s.n),
         array_agg((a.limits ->> ('output_tokens_per_' || s.unit))::bigint order by s.n),
         array_agg((a.spend_limits ->> s.unit)::bigint order by s.n)
    into starts, requests, input, output, spent, lim_requests, lim_input, lim_output, lim_spent
    from (select x.unit, x.n, date_trunc(x.unit, t, 'UTC') as start from unnest(units) with ordinality as x (unit, n)) s
    left join periods p on p.workspace_id = w and p.unit = s.unit and p.start = s.start;
  lim_running := (a.limits ->> 'concurrent_requests')::bigint;

  for item in select * from jsonb_to_recordset(items)
      as i (request_id text, key_id text, input_tokens bigint, hold_micro bigint, key text, body text) loop
    refusal := null;  which := null;  retry := null;
    if a.workspace_id is null or not coalesce(alive ? item.key_id, false) then
      refusal := 'unauthenticated';
    end if;

    if refusal is null and item.key is not null then
      select * into earlier from idempotency i where i.workspace_id = w and i.key = decode(item.key, 'hex') and i.expires_at > t;
      if found then
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
        when requests[u] + 1 > lim_requests[u] then 'requests_per_'
        when input[u] + item.input_tokens > lim_input[u] then 'input_tokens_per_'
        when output[u] >= lim_output[u] then 'output_tokens_per_' end || units[u];
      if which is not null then
        refusal := 'rate_limited';  retry := period_rest(units[u], starts[u], t);
      end if;
    end loop;
    if refusal is null and a.running >= lim_running then
      refusal := 'rate_limited';  which := 'concurrent_requests';  retry := 1000;
    end if;

    -- Granted credit is used first, so what runs can cost at most this much purchased credit.
    exposure := greatest(0, a.held_micro + item.hold_micro - a.granted_micro);
    foreach u in array array[4, 3, 2] loop
      exit when refusal is not null;
      if spent[u] + exposure > lim_spent[u] then
        if spent[u] + greatest(0, item.hold_micro - a.granted_micro) > lim_spent[u] then
          refusal := 'spend_limit_reached';  retry := period_rest(units[u], starts[u], t);
        else
          refusal := 'rate_limited';  which := 'held_credit';  retry := 1000;
        end if;
      end if;
    end loop;
    if refusal is null and a.granted_micro + a.purchased_micro - a.held_micro < item.hold_micro then
      if a.granted_micro + a.purchased_micro < item.hold_micro then
        refusal := 'insufficient_credit';
      else
        refusal := 'rate_limited';  which := 'held_credit';  retry := 1000;
      end if;
    end if;

    if refusal is not null then
      verdicts := verdicts || jsonb_strip_nulls(jsonb_build_object('refusal', refusal, 'limit', which, 'retry_ms', retry));
      continue;
    end if;

    verdicts := verdicts || '{}'::jsonb;
    admitted := admitted + 1;
    a.held_micro := a.held_micro + item.hold_micro;
    a.running := a.running + 1;
    for u in 1..4 loop
      requests[u] := requests[u] + 1;
      input[u] := input[u] + item.input_tokens;
    end loop;
    ids := ids || item.request_id;  holds := holds || item.hold_micro;  idem := idem || decode(item.key, 'hex');
    if item.key is not null then
      insert into idempotency (workspace_id, key, body, request_id, expires_at)
        values (w, decode(item.key, 'hex'), decode(item.body, 'hex'), item.request_id, t + interval '24 hours')
        on conflict (workspace_id, key) do update
          set body = excluded.body, request_id = excluded.request_id, response = null, expires_at = excluded.expires_at;
    end if;
  end loop;

  if admitted > 0 then
    insert into leases (workspace_id, request_id, replica, hold_micro, idempotency_key, taken_at)
      select w, x.id, by_replica, x.hold, x.idem, t from unnest(ids, holds, idem) as x (id, hold, idem);
    insert into ledger (workspace_id, at, kind, reference, held_micro)
      select w, t, 'hold', x.id, x.hold from unnest(ids, holds) as x (id, hold);
    update accounts set held_micro = a.held_micro, running = a.running where workspace_id = w;
    insert into periods (workspace_id, unit, start, requests, input_tokens, output_tokens, spent_micro)
      select w, x.* from unnest(units, starts, requests, input, output, spent) as x
      on conflict (workspace_id, unit) do update set start = excluded.start, requests = excluded.requests,
        input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens, spent_micro = excluded.spent_micro;
  end if;
  return to_jsonb(verdicts);
end $$;

-- Ends a batch of requests of one workspace: the hold is replaced by what was used. An item that was settled before changes nothing.
-- items: rows of `generations` (without the workspace; credits_micro is the price), and "response"? in base64 for its idempotency key.
-- Gives what was charged for each item, in millionths.
create function settle_leases(w text, items jsonb, at timestamptz default null) returns jsonb language plpgsql as $$
declare
  a accounts%rowtype;
  held leases%rowtype;
  item record;
  t timestamptz;
  units text[] := array['minute', 'day', 'week', 'month'];
  charge bigint;  granted bigint;
  tokens bigint := 0;  spent bigint := 0;
  known bigint;
  charges jsonb := '{}';
  fresh text[] := '{}';
begin
  select * into a from accounts where workspace_id = w for update;
  t := coalesce(at, clock_timestamp());
  for item in select * from jsonb_to_recordset(items)
      as i (id text, request_id text, created_at timestamptz, credits_micro bigint, output_tokens bigint, response text) loop
    select credits_micro into known from generations g where g.workspace_id = w and g.created_at = item.created_at and g.id = item.id;
    if found then
      charges := charges || jsonb_build_object(item.request_id, known);
      continue;
    end if;
    delete from leases l where l.workspace_id = w and l.request_id = item.request_id returning * into held;
    if found then
      charge := least(item.credits_micro, held.hold_micro);
      a.held_micro := a.held_micro - held.hold_micro;
      a.running := a.running - 1;
    else
      -- Its replica was taken for dead and the lease released, but it did answer.
      charge := least(item.credits_micro, a.granted_micro + a.purchased_micro - a.held_micro);
      held.hold_micro := 0;
    end if;
    granted := least(charge, a.granted_micro);
    a.granted_micro := a.granted_micro - granted;
    a.purchased_micro := a.purchased_micro - (charge - granted);
    spent := spent + charge - granted;
    tokens := tokens + item.output_tokens;
    insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro, held_micro)
      values (w, t, case when charge > 0 then 'settlement' else 'release' end, item.request_id, -granted, granted - charge, -held.hold_micro);
    if held.idempotency_key is not null then
      if item.response is null then
        delete from idempotency i where i.workspace_id = w and i.key = held.idempotency_key and i.request_id = item.request_id;
      else
        update idempotency i set response = decode(item.response, 'base64')
          where i.workspace_id = w and i.key = held.idempotency_key and i.request_id = item.request_id;
      end if;
    end if;
    charges := charges || jsonb_build_object(item.request_id, charge);
    fresh := fresh || item.request_id;
  end loop;

  if cardinality(fresh) > 0 then
    update accounts set granted_micro = a.granted_micro, purchased_micro = a.purchased_micro, held_micro = a.held_micro, running = a.running
      where workspace_id = w;
    insert into periods (workspace_id, unit, start, output_tokens, spent_micro)
      select w, x, date_trunc(x, t, 'UTC'), tokens, spent from unnest(units) x
      on conflict (workspace_id, unit) do update set start = excluded.start,
        requests = case when periods.start = excluded.start then periods.requests else 0 end,
        input_tokens = case when periods.start = excluded.start then periods.input_tokens else 0 end,
        output_tokens = excluded.output_tokens + case when periods.start = excluded.start then periods.output_tokens else 0 end,
        spent_micro = excluded.spent_micro + case when periods.start = excluded.start then periods.spent_micro else 0 end;
    with settled as (
      insert into generations
        select w, r.created_at, r.id, r.request_id, r.key_id, r.streamed, r.shape, r.effort, r.level, r.input_tokens, r.output_tokens,
               r.cached_tokens, (charges ->> r.request_id)::bigint, r.outcome, r.finish_reason, r.latency_ms, r.model
        from jsonb_populate_recordset(null::generations, items) r where r.request_id = any (fresh)
        on conflict do nothing returning *)
    insert into usage as old (workspace_id, unit, start, key_id, requests, failed_requests, input_tokens, output_tokens, cached_tokens, credits_micro)
      select w, x.unit, date_trunc(x.unit, s.created_at, 'UTC'), s.key_id, count(*) filter (where s.answered), count(*) filter (where not s.answered),
             coalesce(sum(s.input_tokens) filter (where s.answered), 0), coalesce(sum(s.output_tokens) filter (where s.answered), 0),
             coalesce(sum(s.cached_tokens) filter (where s.answered), 0), sum(s.credits_micro)
      from (select *, outcome in ('ok', 'cut_short') or (outcome = 'caller_gone' and streamed) as answered from settled) s,
           unnest(array['minute', 'hour', 'day']) as x (unit)
      group by x.unit, 3, s.key_id
      order by x.unit, 3, s.key_id
      on conflict (workspace_id, unit, start, key_id) do update set
        requests = old.requests + excluded.requests, failed_requests = old.failed_requests + excluded.failed_requests,
        input_tokens = old.input_tokens + excluded.input_tokens, output_tokens = old.output_tokens + excluded.output_tokens,
        cached_tokens = old.cached_tokens + excluded.cached_tokens, credits_micro = old.credits_micro + excluded.credits_micro;
  end if;
  return charges;
end $$;

-- Releases, uncharged, the leases of replicas that have not been heard of since `since`.
create function release_leases(w text, dead text[], at timestamptz default null) returns integer language plpgsql as $$
declare
  t timestamptz;
  released bigint;  total bigint;
begin
  perform from accounts where workspace_id = w for update;
  t := coalesce(at, clock_timestamp());
  with gone as (delete from leases where workspace_id = w and replica = any (dead) returning *),
       written as (insert into ledger (workspace_id, at, kind, reference, held_micro)
                   select w, t, 'release', request_id, -hold_micro from gone),
       forgotten as (delete from idempotency i using gone g where i.workspace_id = w and i.key = g.idempotency_key and i.request_id = g.request_id)
  select count(*), coalesce(sum(hold_micro), 0) into released, total from gone;
  update accounts set held_micro = held_micro - total, running = running - released where workspace_id = w and released > 0;
  return released;
end $$;
