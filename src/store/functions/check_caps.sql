-- Checks one more request with its hold and its input tokens against the caps of its subjects. p: the counters of the
-- workspace, for the time. Returns null when all allow it, or a verdict of exchange(): a refusal, or {"low": true} when
-- only caps are used up after which requests are answered with the effort low. A cap that no wait changes comes
-- first; else the one with the longest wait: until its period ends, or until it ends itself, if what holds then has
-- room. Where headroom of replicas is in the way, they are told to return it; if nothing else is, the refusal has
-- calledBack.
create or replace function check_caps(subjects text[], p periods, hold bigint, input bigint) returns jsonb
language plpgsql as $$
declare
  subject text;
  c record;
  needs bigint;
  refusal jsonb;
  opens timestamptz;                              -- when the cap ends and leaves room
  later timestamptz;                              -- when it ends and leaves room in a period without other use
  worst jsonb;                                    -- of a cap that is reached
  blocked jsonb;                                  -- of one that is not, but for idle headroom of replicas
  is_idle boolean;
  in_the_way text[] := '{}';                      -- subjects with such headroom
  low boolean := false;
begin
  foreach subject in array subjects loop
    for c in select * from cap_use(p.workspace_id, subject, p.at) loop
      needs := case c.figure when 'credits' then hold when 'input_tokens' then input else 1 end;
      -- Where nothing is refused, credits count once they are charged: the highest possible cost of a request can
      -- exceed a budget of which nothing is used.
      continue when c.action = 'low' and c.figure = 'credits' and c.used < c.amount;
      continue when c.used + c.held + c.reserved + needs <= c.amount;
      -- With headroom of a budget that is used up, replicas would go on without a lower effort.
      is_idle := c.has_idle
        and (c.used + c.held + needs <= c.amount or c.action = 'low' and c.figure = 'credits');
      if is_idle then
        in_the_way := in_the_way || subject;
      end if;
      if c.action = 'low' then
        low := true;
        continue;
      end if;
      refusal := jsonb_build_object(
        'refusal', case when c.figure = 'credits' and c.period = 'total' and c.used + needs > c.amount
          then 'insufficient_credit' else 'rate_limited' end,
        'limit', cap_limit(subject, c.figure, c.period));
      opens := case when c.period <> 'total' and c.used + needs > c.amount
        then cap_opens(p.workspace_id, subject, p.at, c.figure, c.period, c.used + needs) end;
      later := case when c.period <> 'total' and needs > c.amount
        then cap_opens(p.workspace_id, subject, p.at, c.figure, c.period, needs) end;
      if needs > c.amount and later is null or c.period = 'total' and c.used + needs > c.amount then
        return jsonb_build_object('refusal', refusal || '{"never": true}');
      end if;
      -- For running requests there is no period.
      refusal := refusal || jsonb_build_object('retry_ms', case when c.used + needs <= c.amount then 1000
        else least(ms_left_until(opens, p.at, p.clock), case when c.period <> '' then
          greatest(ms_left_until(later, p.at, p.clock), ms_left_in_period(c.period, p.at, p.clock)) end) end);
      if is_idle then
        blocked := coalesce(blocked, refusal);
      elsif worst is null or (refusal ->> 'retry_ms')::numeric > (worst ->> 'retry_ms')::numeric then
        worst := refusal;
      end if;
    end loop;
  end loop;
  perform pg_notify('chorus_cap_call_back', p.workspace_id || ' ' || s) from unnest(in_the_way) s group by s;
  return case when worst is not null then jsonb_build_object('refusal', worst)
    when blocked is not null then jsonb_build_object('refusal', blocked, 'calledBack', true)
    when low then '{"low": true}' end;
end $$;
