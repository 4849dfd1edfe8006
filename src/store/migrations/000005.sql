-- What the models took for each request: for operators alone, and no part of what a caller pays.

-- Null where nobody knows: in rows of earlier versions, and where the service broke. A settlement that waited in the journal of an earlier
-- version has none of them, and arrives all the same.
alter table generations
  add column model_calls integer,               -- calls of vendors, tries included
  add column model_input_tokens bigint,
  add column model_output_tokens bigint,
  add column cost_usd numeric;                  -- of the calls whose model has a price in the catalogue

-- As before, with the four columns above.
-- Ends a batch of requests of one workspace: the hold is replaced by what was used. An item that was settled before changes nothing.
-- items: rows of `generations` (without the workspace; credits_micro is the price), and for a request with an idempotency key "key" and
-- "body" in hex, and "response" in base64 if there is an answer to keep. No request may be in it twice.
-- Gives {request_id: charge}, in millionths and as text, for those of which something else than the price was charged.
create or replace function settle_leases(w text, items jsonb, at timestamptz default null) returns jsonb language plpgsql
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
                outcome text, finish_reason text, latency_ms integer, model text,
                model_calls integer, model_input_tokens bigint, model_output_tokens bigint, cost_usd numeric)) with ordinality
              as i (id, request_id, created_at, key_id, streamed, shape, effort, level, input_tokens, output_tokens, cached_tokens, price,
                outcome, finish_reason, latency_ms, model, model_calls, model_input_tokens, model_output_tokens, cost_usd, place)
            where held ? request_id) i
    ), booked as (
      insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro, held_micro)
      select w, p.at, case when charge > 0 then 'settlement' else 'release' end, request_id, -s.granted, s.granted - charge, -hold
      from settled s
    ), recorded as (
      insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens, output_tokens,
        cached_tokens, credits_micro, outcome, finish_reason, latency_ms, model, model_calls, model_input_tokens, model_output_tokens, cost_usd)
      select w, created_at, id, request_id, key_id, streamed, shape, effort, level, input_tokens, output_tokens,
        cached_tokens, charge, outcome, finish_reason, latency_ms, model, model_calls, model_input_tokens, model_output_tokens, cost_usd
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
