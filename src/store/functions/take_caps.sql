-- Counts an admitted request for those of its subjects that have caps, and what it holds. at: the time of the
-- workspace's windows.
create or replace function take_caps(w text, subjects text[], request text, under bigint, hold bigint, input bigint,
  at timestamptz) returns void language plpgsql as $$
declare
  of_subject text;
  s subject_periods%rowtype;
begin
  foreach of_subject in array subjects loop
    continue when not exists (select from caps_of(w, of_subject, at));
    s := subject_periods_at(w, of_subject, at);
    for u in 1..5 loop
      s.requests[u] := s.requests[u] + 1;
      s.input_tokens[u] := s.input_tokens[u] + input;
    end loop;
    insert into subject_periods values (s.*)
      on conflict (workspace_id, subject) do update set at = excluded.at, requests = excluded.requests,
        input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
        spent_micro = excluded.spent_micro;
    insert into subject_holds values (w, request, of_subject, under, hold)
      on conflict (workspace_id, request_id, subject) do update set grant_id = excluded.grant_id,
        hold_micro = excluded.hold_micro;
  end loop;
end $$;
