-- Opens a lease for a request that was answered although its lease had been released, because its replica was taken for
-- dead; settle_leases() then settles it. The hold is as much of the price as balance and spend limits allow. It is 0
-- when another request has used the same idempotency key since, because a key is charged once.
-- key_hex, body_hex: hashes, null without an idempotency key. has_response: there is a response to keep. p: the current
-- counters.
-- The caller has locked the account.
create or replace function reopen_lease(w text, id text, created timestamptz, price_micro bigint,
  key_hex text, body_hex text, has_response boolean, p periods) returns void language plpgsql as $$
declare
  a accounts%rowtype;
  hold bigint;
begin
  select * into strict a from accounts where workspace_id = w;
  hold := greatest(0, least(price_micro, a.granted_micro - a.held_micro + least(a.purchased_micro,
    (a.spend_limits ->> 'day')::bigint - p.spent_micro[2],
    (a.spend_limits ->> 'week')::bigint - p.spent_micro[3],
    (a.spend_limits ->> 'month')::bigint - p.spent_micro[4])));
  if has_response then
    insert into idempotency (workspace_id, key, body, request_id, expires_at)
      values (w, decode(key_hex, 'hex'), decode(body_hex, 'hex'), id, created + interval '24 hours')
      on conflict (workspace_id, key) do nothing;
  end if;
  if exists (select from idempotency i
      where i.workspace_id = w and i.key = decode(key_hex, 'hex') and i.request_id <> id) then
    hold := 0;
  end if;
  insert into leases (workspace_id, request_id, replica, hold_micro, taken_at) values (w, id, '', hold, p.at);
  insert into ledger (workspace_id, at, kind, reference, held_micro) values (w, p.at, 'hold', id, hold);
  update accounts set held_micro = held_micro + hold, running = running + 1 where workspace_id = w;
end $$;
