-- What an earlier request with the same idempotency key means for a request: null: nothing, it is admitted as any
-- other; else a verdict of exchange().
-- A late copy of an exchange can ask for a request again that has ended. Its response stays.
-- key_hex, body_hex: hashes. grant_id: of the replica that asks; it may not be in the table yet.
create or replace function earlier_use(w text, key_hex text, body_hex text, id text, grant_id bigint, at timestamptz)
returns jsonb
language plpgsql stable as $$
declare
  earlier idempotency%rowtype;
begin
  -- Compares the expiry after the query: in the query it could make the planner use the index on expiries, across
  -- all workspaces.
  select * into earlier from idempotency i where i.workspace_id = w and i.key = decode(key_hex, 'hex');
  if not found or earlier.expires_at <= at or earlier.request_id = id and earlier.response is null then
    return null;
  end if;
  if earlier.response is null and earlier.grant_id is distinct from earlier_use.grant_id
      and not exists (select from grants g where g.workspace_id = w and g.id = earlier.grant_id) then
    -- It has ended without a response, or its replica is dead.
    return null;
  end if;
  return case
    when earlier.body <> decode(body_hex, 'hex') then '{"refusal": {"refusal": "idempotency_key_reused"}}'
    when earlier.response is null then '{"refusal": {"refusal": "idempotency_key_in_use", "retry_ms": 1000}}'
    else jsonb_build_object('response', encode(earlier.response, 'base64')) end;
end $$;
