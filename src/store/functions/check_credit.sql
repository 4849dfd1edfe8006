-- Checks the hold of one more request against the spend limits and the balance of a workspace. a and p: its account and
-- its counters, with the requests that run. held_micro: what these hold. Returns null when the request is allowed, else
-- a refusal. A spend limit that no wait changes comes first, and has no retry_ms. Else the longest wait counts: a week
-- can end after its month.
-- Granted credit is used first, so only the part of a hold above it counts as spending. A hold without such a part is
-- allowed also where more was spent than a limit that was lowered. Refusals that waiting for other requests cannot
-- change come first: the request alone exceeds a spend limit or the balance. A request that is only too
-- much together with those that run is refused with the limit held_credit.
create or replace function check_credit(a accounts, p periods, held_micro bigint, hold_micro bigint) returns jsonb
language plpgsql stable as $$
declare
  units constant text[] := array['minute', 'day', 'week', 'month'];
  u int;
  max_spent bigint;
  wait numeric;
  balance constant bigint := a.granted_micro + a.purchased_micro;
  excess constant bigint := greatest(0, hold_micro - a.granted_micro);
  exposure constant bigint := greatest(0, held_micro + hold_micro - a.granted_micro);
begin
  foreach u in array array[4, 3, 2] loop
    max_spent := a.spend_limits ->> units[u];
    if excess > 0 and p.spent_micro[u] + excess > max_spent then
      if excess > max_spent then
        return '{"refusal": "spend_limit_reached", "never": true}';
      end if;
      wait := greatest(wait, ms_left_in_period(units[u], p.at, p.clock));
    end if;
  end loop;
  if wait is not null then
    return jsonb_build_object('refusal', 'spend_limit_reached', 'retry_ms', wait);
  end if;
  if balance < hold_micro then
    return '{"refusal": "insufficient_credit"}';
  end if;
  if balance - held_micro < hold_micro
      or exposure > 0 and (p.spent_micro[2] + exposure > (a.spend_limits ->> 'day')::bigint
        or p.spent_micro[3] + exposure > (a.spend_limits ->> 'week')::bigint
        or p.spent_micro[4] + exposure > (a.spend_limits ->> 'month')::bigint) then
    return '{"refusal": "rate_limited", "limit": "held_credit", "retry_ms": 1000}';
  end if;
  return null;
end $$;
