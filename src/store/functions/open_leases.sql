-- Admits a batch of requests of one workspace, in their order: checks key, limits, spend limits and credit, and holds
-- the highest possible cost of each admitted request. A refused request changes nothing.
-- items: [{"request_id", "key_id", "input_tokens", "hold_micro", "key"?, "body"?}]; key and body are the hashes of an
-- idempotency key and of the request, in hex. at: the current time; tests set it.
-- Returns one verdict for each item: {} when it is admitted; {"response"} in base64 when the idempotency key has a
-- response; else {"refusal", "limit"?, "retry_ms"?, "never"?}. never: no wait helps, because the request would be
-- refused with the limit unused.
-- Its settings make every statement find its rows by primary key. Statistics of tables that are empty at one time and
-- full at another could lead to a plan with a sequential scan, which a connection would then keep.
create or replace function open_leases(w text, by_replica text, items jsonb, at timestamptz default null) returns jsonb
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  a accounts%rowtype;
  p periods%rowtype;
  item record;
  earlier idempotency%rowtype;
  active_keys text[];
  verdict jsonb;
  verdicts jsonb[] := '{}';
  ids text[] := '{}';  holds bigint[] := '{}';  keys bytea[] := '{}';   -- of the admitted requests
begin
  select * into a from accounts where workspace_id = w for update;
  -- Reads the clock after the lock, so that the times of a workspace never decrease.
  p := periods_at(w, coalesce(at, clock_timestamp()));
  select array_agg(k.id) into active_keys from api_keys k
    where k.workspace_id = w and k.revoked_at is null and (k.expires_at is null or k.expires_at > p.clock)
      and k.id = any (array(select i ->> 'key_id' from jsonb_array_elements(items) i));

  for item in select * from jsonb_to_recordset(items)
      as i (request_id text, key_id text, input_tokens bigint, hold_micro bigint, key text, body text) loop
    verdict := null;
    if a.workspace_id is null or (item.key_id = any (active_keys)) is not true then
      verdict := '{"refusal": "unauthenticated"}';
    elsif item.key is not null then
      -- Compares the expiry after the query: in the query it could make the planner use the index on expiries, across
      -- all workspaces.
      select * into earlier from idempotency i where i.workspace_id = w and i.key = decode(item.key, 'hex');
      if found and earlier.expires_at > p.at then
        verdict := case
          when earlier.body <> decode(item.body, 'hex') then '{"refusal": "idempotency_key_reused"}'
          when earlier.response is not null then jsonb_build_object('response', encode(earlier.response, 'base64'))
          when earlier.request_id = any (ids)
              or exists (select from leases l where l.workspace_id = w and l.request_id = earlier.request_id)
            then '{"refusal": "idempotency_key_in_use", "retry_ms": 1000}' end;
      end if;
    end if;
    verdict := coalesce(verdict, check_rate_limits(a, p, a.running, item.input_tokens),
      check_credit(a, p, a.held_micro, item.hold_micro));
    if verdict is not null then
      verdicts := verdicts || verdict;
      continue;
    end if;

    -- Counts the request at once, so that the next ones of the batch are checked against it.
    verdicts := verdicts || '{}'::jsonb;
    a.running := a.running + 1;
    a.held_micro := a.held_micro + item.hold_micro;
    for u in 1..4 loop
      p.requests[u] := p.requests[u] + 1;
      p.input_tokens[u] := p.input_tokens[u] + item.input_tokens;
    end loop;
    ids := ids || item.request_id;  holds := holds || item.hold_micro;  keys := keys || decode(item.key, 'hex');
    if item.key is not null then
      insert into idempotency (workspace_id, key, body, request_id, expires_at)
        values (w, decode(item.key, 'hex'), decode(item.body, 'hex'), item.request_id, p.at + interval '24 hours')
        on conflict (workspace_id, key) do update
          set body = excluded.body, request_id = excluded.request_id, response = null, expires_at = excluded.expires_at;
    end if;
  end loop;

  if ids <> '{}' then
    insert into leases (workspace_id, request_id, replica, hold_micro, idempotency_key, taken_at)
      select w, x.id, by_replica, x.hold, x.key, p.at from unnest(ids, holds, keys) as x (id, hold, key);
    insert into ledger (workspace_id, at, kind, reference, held_micro)
      select w, p.at, 'hold', x.id, x.hold from unnest(ids, holds) as x (id, hold);
    update accounts set held_micro = a.held_micro, running = a.running where workspace_id = w;
    insert into periods values (p.*) on conflict (workspace_id) do update
      set at = excluded.at, requests = excluded.requests, input_tokens = excluded.input_tokens,
        output_tokens = excluded.output_tokens, spent_micro = excluded.spent_micro, clock = excluded.clock;
  else
    -- Notes a step back of the clock; the time of the windows advances from there. It begins no window.
    update periods o set at = p.at, clock = p.clock where o.workspace_id = w and coalesce(o.clock, o.at) > p.clock;
  end if;
  return to_jsonb(verdicts);
end $$;
