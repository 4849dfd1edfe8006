-- Applies what an item of exchange() says of the headroom of subjects that its replica has. of_grant: the grant of the
-- replica. now: the time of the workspace's windows, which the admitted requests were not admitted after.
-- reports: [{"subject", "requests", "input", "credits", "output", "held"?, "running"?, "returns"?}]: what was admitted
-- since the previous item, what its posts charge, and what requests hold that run; with returns, nothing but this stays
-- reserved. Each subject comes once.
create or replace function report_subjects(w text, of_grant bigint, reports jsonb, now timestamptz) returns void
language plpgsql as $$
declare
  ended text;
begin
  with report as materialized (
    select r.*, g.at, g.credit_micro, g.held_micro, g.running as reserved, g.running_now,
      g.requests as requests_left, g.input_tokens as input_left, g.output_tokens as output_left,
      windows_since(g.at, now, r.requests) as counted, windows_since(g.at, now, r.input) as taken
    from jsonb_to_recordset(reports) as r (subject text, requests bigint, input bigint,
      credits bigint, output bigint, held bigint, running bigint, returns boolean)
    left join lateral (
      select * from subject_grants g where g.workspace_id = w and g.subject = r.subject and g.grant_id = of_grant
      offset 0) g on true
  ), counted as (
    insert into subject_periods
      select w, r.subject, now, add_to_periods(p.requests, p.at, now, r.counted),
        add_to_periods(p.input_tokens, p.at, now, r.taken),
        add_to_periods(p.output_tokens, p.at, now, '{0,0,0,0,0}'),
        add_to_periods(p.spent_micro, p.at, now, '{0,0,0,0,0}')
      from report r cross join lateral (
        select * from subject_periods p where p.workspace_id = w and p.subject = r.subject offset 0) p
      where r.at is not null and r.requests > 0
      on conflict (workspace_id, subject) do update set at = excluded.at, requests = excluded.requests,
        input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
        spent_micro = excluded.spent_micro
  )
  -- A subject that had no cap before has no row. A row keeps its time.
  insert into subject_grants
    select w, subject, of_grant, now,
      case when returns then held else greatest(0, credit_micro - credits) end, coalesce(held, held_micro),
      case when returns then running else reserved end, coalesce(running, running_now),
      case when returns then 0 else greatest(0, requests_left - requests) end,
      case when returns then 0 else greatest(0, input_left - input) end,
      case when returns then 0 else greatest(0, output_left - output) end, returns is not true
    from report where case when returns then held > 0 or running > 0 else at is not null end
    on conflict (workspace_id, subject, grant_id) do update set credit_micro = excluded.credit_micro,
      held_micro = excluded.held_micro, running = excluded.running, running_now = excluded.running_now,
      requests = excluded.requests, input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
      has_idle = excluded.has_idle;
  for ended in select subject from jsonb_to_recordset(reports) as r (subject text, held bigint, running bigint,
      returns boolean) where returns and held = 0 and running = 0 loop
    delete from subject_grants g where g.workspace_id = w and g.subject = ended and g.grant_id = of_grant;
  end loop;
end $$;
