-- The counters of a subject with what settlements add, each to all periods. now: the time of the workspace's windows.
create or replace function add_to_subject(s subject_periods, now timestamptz, output bigint, charged bigint)
returns subject_periods language plpgsql stable as $$
begin
  s := subject_periods_at(s.workspace_id, s.subject, now);
  for u in 1..5 loop
    s.output_tokens[u] := s.output_tokens[u] + output;
    s.spent_micro[u] := s.spent_micro[u] + charged;
  end loop;
  return s;
end $$;
