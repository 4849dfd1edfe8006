-- Applies what an item of exchange() says of the headroom of subjects that its replica has. of_grant: the grant of the
-- replica. now: the time of the workspace's windows, which the admitted requests were not admitted after.
-- reports: [{"subject", "requests", "input", "credits", "output", "held"?, "running"?, "returns"?}]: what was admitted
-- since the previous item, what its posts charge, and what requests hold that run; with returns, nothing but this stays
-- reserved. Each subject comes once.
create or replace function report_subjects(w text, of_grant bigint, reports jsonb, now timestamptz) returns void
language plpgsql as $$
begin
  with report as materialized (
    select r.*, g.at, windows_since(g.at, now, r.requests) as counted, windows_since(g.at, now, r.input) as taken
    from jsonb_to_recordset(reports) as r (subject text, requests bigint, input bigint,
      credits bigint, output bigint, held bigint, running bigint, returns boolean)
    left join subject_grants g on g.workspace_id = w and g.subject = r.subject and g.grant_id = of_grant
  ), counted as (
    update subject_periods p set at = now, requests = add_to_periods(p.requests, p.at, now, r.counted),
        input_tokens = add_to_periods(p.input_tokens, p.at, now, r.taken),
        output_tokens = add_to_periods(p.output_tokens, p.at, now, '{0,0,0,0,0}'),
        spent_micro = add_to_periods(p.spent_micro, p.at, now, '{0,0,0,0,0}')
      from report r
      where p.workspace_id = w and p.subject = r.subject and r.at is not null and r.requests > 0
  ), returned as (
    delete from subject_grants g using report r
      where g.workspace_id = w and g.subject = r.subject and g.grant_id = of_grant
        and r.returns and r.held = 0 and r.running = 0
  ), kept as (
    -- A subject that had no cap before has no row.
    insert into subject_grants
      select w, subject, of_grant, now, held, held, running, running, 0, 0, 0, false
      from report where returns and (held > 0 or running > 0)
      on conflict (workspace_id, subject, grant_id) do update set credit_micro = excluded.credit_micro,
        held_micro = excluded.held_micro, running = excluded.running, running_now = excluded.running_now, requests = 0,
        input_tokens = 0, output_tokens = 0, has_idle = false
  )
  update subject_grants g set credit_micro = greatest(0, g.credit_micro - r.credits),
      held_micro = coalesce(r.held, g.held_micro), running_now = coalesce(r.running, g.running_now),
      requests = greatest(0, g.requests - r.requests), input_tokens = greatest(0, g.input_tokens - r.input),
      output_tokens = greatest(0, g.output_tokens - r.output), has_idle = true
    from report r
    where g.workspace_id = w and g.subject = r.subject and g.grant_id = of_grant and r.returns is not true;
end $$;
