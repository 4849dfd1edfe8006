-- Ends a batch of requests of one workspace: releases each hold and charges the price, at most the hold. Settling a
-- request again changes nothing, so a caller repeats a statement whose result it did not get.
-- items: rows of `generations` without the workspace, where credits_micro is the price; for a request with an
-- idempotency key also "key" and "body" in hex, and "response" in base64 when there is a response to keep. A request
-- may be in it once. at: the current time; tests set it.
-- Returns {request_id: charge}, in micro and as text, for the requests whose charge differs from their price.
-- About its settings see open_leases().
create or replace function settle_leases(w text, items jsonb, at timestamptz default null) returns jsonb
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  a accounts%rowtype;
  p periods%rowtype;
  item record;
  holds jsonb;                                    -- request_id → hold, of the items that have a lease
  settled_count int;  freed bigint;  charged bigint;  from_granted bigint;  output bigint;
  differing jsonb;                                -- the result
  earlier_charge bigint;
  reopened text[] := '{}';
begin
  select * into a from accounts where workspace_id = w for update;
  if not found then
    return (select jsonb_object_agg(i ->> 'request_id', '0') from jsonb_array_elements(items) i);
  end if;
  p := periods_at(w, coalesce(at, clock_timestamp()));
  with ended as (
    delete from leases
    where workspace_id = w and request_id = any (array(select i ->> 'request_id' from jsonb_array_elements(items) i))
    returning request_id, hold_micro)
  select coalesce(jsonb_object_agg(request_id, hold_micro), '{}') into holds from ended;

  if holds <> '{}' then
    with settled as materialized (
      -- Uses granted credit first, in the order of the batch.
      select *, least(charge, greatest(0, a.granted_micro - sum(charge) over (order by ordinality) + charge))::bigint
          as granted
      from (select i.*, is_answered(outcome, streamed) as answered,
              (holds ->> request_id)::bigint as hold,
              least(credits_micro, (holds ->> request_id)::bigint) as charge
            from jsonb_populate_recordset(null::generations, items) with ordinality as i
            where holds ? request_id) i
    ), booked as (
      insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro, held_micro)
      select w, p.at, case when charge > 0 then 'settlement' else 'release' end, request_id,
        -s.granted, s.granted - charge, -hold
      from settled s
    ), recorded as (
      insert into generations (workspace_id, created_at, id, request_id, key_id, streamed, shape, effort, level,
        input_tokens, output_tokens, cached_tokens, credits_micro, outcome, finish_reason, latency_ms, model,
        model_calls, model_input_tokens, model_output_tokens, cost_usd)
      select w, created_at, id, request_id, key_id, streamed, shape, effort, level,
        input_tokens, output_tokens, cached_tokens, charge, outcome, finish_reason, latency_ms, model,
        model_calls, model_input_tokens, model_output_tokens, cost_usd
      from settled
    ), used as (
      insert into usage as old (workspace_id, unit, start, key_id, requests, failed_requests,
        input_tokens, output_tokens, cached_tokens, credits_micro)
      select w, x.unit, date_trunc(x.unit, created_at, 'UTC'), key_id,
        count(*) filter (where answered), count(*) filter (where not answered),
        coalesce(sum(input_tokens) filter (where answered), 0), coalesce(sum(output_tokens) filter (where answered), 0),
        coalesce(sum(cached_tokens) filter (where answered), 0), sum(charge)
      from settled, unnest(array['minute', 'hour', 'day']) as x (unit)
      group by 2, 3, 4
      on conflict (workspace_id, unit, start, key_id) do update set
        requests = old.requests + excluded.requests, failed_requests = old.failed_requests + excluded.failed_requests,
        input_tokens = old.input_tokens + excluded.input_tokens,
        output_tokens = old.output_tokens + excluded.output_tokens,
        cached_tokens = old.cached_tokens + excluded.cached_tokens,
        credits_micro = old.credits_micro + excluded.credits_micro
    )
    select count(*), sum(hold), sum(charge), sum(s.granted), sum(output_tokens),
        jsonb_object_agg(request_id, charge::text) filter (where charge <> credits_micro)
      into settled_count, freed, charged, from_granted, output, differing from settled s;
    update accounts set granted_micro = granted_micro - from_granted,
        purchased_micro = purchased_micro - charged + from_granted,
        held_micro = held_micro - freed, running = running - settled_count
      where workspace_id = w;
    for u in 1..4 loop
      p.output_tokens[u] := p.output_tokens[u] + output;
      p.spent_micro[u] := p.spent_micro[u] + charged - from_granted;
    end loop;
    insert into periods values (p.*) on conflict (workspace_id) do update
      set at = excluded.at, requests = excluded.requests, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens, spent_micro = excluded.spent_micro, clock = excluded.clock;
  end if;
  differing := coalesce(differing, '{}');

  -- The items that have an idempotency key, and those that had no lease.
  for item in select i.* from jsonb_to_recordset(items)
      as i (request_id text, id text, created_at timestamptz, credits_micro bigint, key text, body text, response text)
      where i.key is not null or not holds ? i.request_id loop
    if holds ? item.request_id then
      if item.response is null then
        delete from idempotency i
          where i.workspace_id = w and i.key = decode(item.key, 'hex') and i.request_id = item.request_id;
      else
        update idempotency i set response = decode(item.response, 'base64')
          where i.workspace_id = w and i.key = decode(item.key, 'hex') and i.request_id = item.request_id;
      end if;
      continue;
    end if;
    select g.credits_micro into earlier_charge from generations g
      where g.workspace_id = w and g.created_at = item.created_at and g.id = item.id;
    if found then
      differing := differing || jsonb_build_object(item.request_id, earlier_charge::text);
    else
      perform reopen_lease(w, item.request_id, item.created_at, item.credits_micro, item.key, item.body,
        item.response is not null, p);
      reopened := reopened || item.request_id;
    end if;
  end loop;
  if reopened <> '{}' then
    differing := differing || settle_leases(w,
      (select jsonb_agg(i) from jsonb_array_elements(items) i where i ->> 'request_id' = any (reopened)), p.clock);
  end if;
  return differing;
end $$;
