-- Checks one more request with its hold and its input tokens against the caps of its subjects. p: the counters of the
-- workspace, for the time. Returns null when all allow it, or a verdict of exchange(): a refusal, or {"low": true} when
-- only caps are used up after which requests are answered with the effort low. A cap that no wait changes comes first;
-- else the one with the longest wait.
create or replace function check_caps(subjects text[], p periods, hold bigint, input bigint) returns jsonb
language plpgsql stable as $$
declare
  subject text;
  c record;
  needs bigint;
  refusal jsonb;
  worst jsonb;
  low boolean := false;
begin
  foreach subject in array subjects loop
    for c in select * from cap_use(p.workspace_id, subject, p.at) loop
      needs := case c.figure when 'credits' then hold when 'input_tokens' then input else 1 end;
      continue when c.used + c.held + needs <= c.amount;
      if c.action = 'low' then
        low := true;
        continue;
      end if;
      refusal := jsonb_build_object(
        'refusal', case when c.figure = 'credits' and c.period = 'total' and c.used + needs > c.amount
          then 'insufficient_credit' else 'rate_limited' end,
        'limit', case when starts_with(subject, 'tag:') then 'tag.' || split_part(substr(subject, 5), '=', 1)
            else split_part(subject, ':', 1) end || ':' || c.figure
          || case c.period when '' then '' when 'total' then '_total' else '_per_' || c.period end);
      if needs > c.amount or c.period = 'total' and c.used + needs > c.amount then
        return jsonb_build_object('refusal', refusal || '{"never": true}');
      end if;
      refusal := refusal || jsonb_build_object('retry_ms', case when c.used + needs <= c.amount then 1000
        else ms_left_in_period(c.period, p.at, p.clock) end);
      if worst is null or (refusal ->> 'retry_ms')::numeric > (worst ->> 'retry_ms')::numeric then
        worst := refusal;
      end if;
    end loop;
  end loop;
  return case when worst is not null then jsonb_build_object('refusal', worst) when low then '{"low": true}' end;
end $$;
