-- Decides about the asks of an item of exchange() in their order, and reserves spare headroom.
-- a, p: the account, which the caller has locked, and the counters. g: the grant with what the item keeps. charges: for
-- the reply. Returns grant, with the reply, and counters. The caller writes both.
create or replace function reserve(a accounts, inout p periods, inout g grants, asks jsonb, spare jsonb, live int,
  charges jsonb) language plpgsql as $$
declare
  units constant text[] := array['minute', 'day', 'week', 'month'];
  limited constant boolean[] := array[a.limits ? 'concurrent_requests', is_limited(a, 'requests'),
    is_limited(a, 'input_tokens'), is_limited(a, 'output_tokens')];
  r periods%rowtype := p;                         -- the counters with what is reserved
  held bigint;  runs bigint;                      -- of the requests that run
  reserved bigint;  reserved_runs bigint;         -- of the requests that run, and in advance
  q periods%rowtype;
  o record;                                       -- what other replicas have reserved
  starts constant timestamptz[] := array[date_trunc('minute', p.at, 'UTC'), date_trunc('day', p.at, 'UTC'),
    date_trunc('month', p.at, 'UTC')];
  ask record;
  verdict jsonb;
  short jsonb;                                    -- why it does not fit beside all that is reserved
  refusal jsonb;                                  -- why it does not fit beside the requests that run
  verdicts jsonb[] := '{}';
  called_back boolean := false;
  n bigint;                                       -- requests for which spare headroom is reserved
  extra jsonb;
  over boolean;
begin
  select coalesce(sum(credit_micro), 0)::bigint as credit, coalesce(sum(held_micro), 0)::bigint as held,
      coalesce(sum(running), 0)::bigint as running, coalesce(sum(running_now), 0)::bigint as running_now,
      coalesce(sum(requests) filter (where at >= starts[1]), 0)::bigint as requests_1,
      coalesce(sum(requests) filter (where at >= starts[2]), 0)::bigint as requests_2,
      coalesce(sum(requests) filter (where at >= starts[3]), 0)::bigint as requests_4,
      coalesce(sum(input_tokens) filter (where at >= starts[1]), 0)::bigint as input_1,
      coalesce(sum(input_tokens) filter (where at >= starts[2]), 0)::bigint as input_2,
      coalesce(sum(input_tokens) filter (where at >= starts[3]), 0)::bigint as input_4,
      coalesce(sum(output_tokens) filter (where at >= starts[1]), 0)::bigint as output_1,
      coalesce(sum(output_tokens) filter (where at >= starts[2]), 0)::bigint as output_2,
      coalesce(sum(output_tokens) filter (where at >= starts[3]), 0)::bigint as output_4
    into o from grants where workspace_id = g.workspace_id and replica <> g.replica;
  r.requests := array[p.requests[1] + o.requests_1 + g.requests, p.requests[2] + o.requests_2 + g.requests, 0,
    p.requests[4] + o.requests_4 + g.requests];
  r.input_tokens := array[p.input_tokens[1] + o.input_1 + g.input_tokens,
    p.input_tokens[2] + o.input_2 + g.input_tokens, 0, p.input_tokens[4] + o.input_4 + g.input_tokens];
  r.output_tokens := array[p.output_tokens[1] + o.output_1 + g.output_tokens,
    p.output_tokens[2] + o.output_2 + g.output_tokens, 0, p.output_tokens[4] + o.output_4 + g.output_tokens];
  reserved := o.credit + g.credit_micro;
  reserved_runs := o.running + g.running;
  held := o.held + g.held_micro;
  runs := o.running_now + g.running_now;

  for ask in select * from jsonb_to_recordset(asks)
      as i ("requestId" text, hold bigint, input bigint, key text, body text, subjects text[]) loop
    verdict := null;
    refusal := null;
    if ask.key is not null then
      verdict := earlier_use(g.workspace_id, ask.key, ask.body, ask."requestId", g.id, p.at);
    end if;
    if verdict is null then
      q := r;
      q.output_tokens := p.output_tokens;
      short := coalesce(check_rate_limits(a, q, reserved_runs, ask.input), check_credit(a, q, reserved, ask.hold));
      if short is not null then
        -- What is reserved in advance can be returned, so it is no reason for a refusal.
        refusal := coalesce(check_rate_limits(a, p, runs, ask.input), check_credit(a, p, held, ask.hold));
      end if;
      if refusal is null and ask.subjects is not null then
        verdict := check_caps(ask.subjects, p, ask.hold, ask.input);
      end if;
      if short is not null and verdict -> 'refusal' is null then
        called_back := called_back or refusal is null;
        -- Other replicas return what is in the way at once, so no period has to end.
        verdict := case when refusal is not null then jsonb_build_object('refusal', refusal)
          else jsonb_build_object('refusal', short || '{"retry_ms": 1000}', 'calledBack', true) end;
      end if;
    end if;
    verdicts := verdicts || coalesce(verdict, '{}');
    continue when verdict - 'low' <> '{}';
    if ask.subjects is not null then
      perform take_caps(g.workspace_id, ask.subjects, ask."requestId", g.id, ask.hold, ask.input, p.at);
    end if;
    for u in 1..4 loop
      p.requests[u] := p.requests[u] + 1;
      r.requests[u] := r.requests[u] + 1;
      p.input_tokens[u] := p.input_tokens[u] + ask.input;
      r.input_tokens[u] := r.input_tokens[u] + ask.input;
    end loop;
    reserved := reserved + ask.hold;
    reserved_runs := reserved_runs + 1;
    held := held + ask.hold;
    runs := runs + 1;
    g.credit_micro := g.credit_micro + ask.hold;
    g.held_micro := g.held_micro + ask.hold;
    g.running := g.running + 1;
    g.running_now := g.running_now + 1;
    if ask.key is not null then
      insert into idempotency (workspace_id, key, body, request_id, grant_id, expires_at)
        values (g.workspace_id, decode(ask.key, 'hex'), decode(ask.body, 'hex'), ask."requestId", g.id,
          p.at + interval '24 hours')
        on conflict (workspace_id, key) do update
          set body = excluded.body, request_id = excluded.request_id, grant_id = excluded.grant_id, response = null,
            expires_at = excluded.expires_at;
    end if;
  end loop;

  n := spare ->> 'n';
  if n > 0 then
    n := least(n, (credit_capacity(a, p) - reserved) / nullif(2 * live * (spare ->> 'credit')::bigint, 0),
      ((a.limits ->> 'concurrent_requests')::bigint - reserved_runs) / (2 * live));
    for u in array_lower(units, 1)..array_upper(units, 1) loop
      n := least(n, ((a.limits ->> ('requests_per_' || units[u]))::bigint - r.requests[u]) / (2 * live),
        ((a.limits ->> ('input_tokens_per_' || units[u]))::bigint - r.input_tokens[u])
          / nullif(2 * live * (spare ->> 'input')::bigint, 0),
        ((a.limits ->> ('output_tokens_per_' || units[u]))::bigint - r.output_tokens[u])
          / nullif(2 * live * (spare ->> 'output')::bigint, 0));
    end loop;
    -- At the edge each request asks for its own.
    if n < least(4, (spare ->> 'n')::bigint) then
      n := 0;
    end if;
  end if;
  extra := jsonb_build_object('credit', n * (spare ->> 'credit')::bigint,
    'running', case when limited[1] then n end, 'requests', case when limited[2] then n end,
    'input', case when limited[3] then n * (spare ->> 'input')::bigint end,
    'output', case when limited[4] then n * (spare ->> 'output')::bigint end);
  g.credit_micro := g.credit_micro + (extra ->> 'credit')::bigint;
  g.running := g.running + coalesce((extra ->> 'running')::bigint, 0);
  g.requests := g.requests + coalesce((extra ->> 'requests')::bigint, 0);
  g.input_tokens := g.input_tokens + coalesce((extra ->> 'input')::bigint, 0);
  g.output_tokens := g.output_tokens + coalesce((extra ->> 'output')::bigint, 0);
  over := (g.credit_micro > g.held_micro or g.running > g.running_now
      or greatest(g.requests, g.input_tokens, g.output_tokens) > 0)
    and (reserved > credit_capacity(a, p) or exists (
      select from unnest(array['requests_per_minute', 'requests_per_day', 'requests_per_month',
          'input_tokens_per_minute', 'input_tokens_per_day', 'input_tokens_per_month', 'output_tokens_per_minute',
          'output_tokens_per_day', 'output_tokens_per_month', 'concurrent_requests'],
        array[r.requests[1], r.requests[2], r.requests[4], r.input_tokens[1], r.input_tokens[2], r.input_tokens[4],
          r.output_tokens[1], r.output_tokens[2], r.output_tokens[4], reserved_runs]) as x (name, size)
      where x.size > (a.limits ->> x.name)::bigint));
  g.reply := jsonb_build_object('state', 'done', 'grant', g.id, 'verdicts', to_jsonb(verdicts), 'charges', charges,
    'extra', extra, 'minute', (extract(epoch from starts[1]) * 1000)::bigint,
    'msLeft', ms_left_in_period('minute', p.at, p.clock), 'isOver', over);
  if limited[2] or limited[3] or limited[4] then
    -- What is reserved in advance is left for this replica only, which adds it.
    for u in 1..4 loop
      r.requests[u] := r.requests[u] + coalesce((extra ->> 'requests')::bigint, 0);
      r.input_tokens[u] := r.input_tokens[u] + coalesce((extra ->> 'input')::bigint, 0);
      r.output_tokens[u] := r.output_tokens[u] + coalesce((extra ->> 'output')::bigint, 0);
    end loop;
  end if;
  g.reply := g.reply || jsonb_build_object('left', limits_left(a, r));
  if called_back then
    perform pg_notify('chorus_call_back', g.workspace_id);
  end if;
end $$;
