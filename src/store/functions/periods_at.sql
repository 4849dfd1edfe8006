-- The counters of a workspace at the time `at`: those of periods that have ended are 0. Writes nothing. A clock that
-- was set back by less than a minute, for example because another server took over, does not reset the counters.
create or replace function periods_at(w text, at timestamptz) returns periods language plpgsql as $$
declare
  p periods%rowtype;
  units constant text[] := array['minute', 'day', 'week', 'month'];
begin
  select * into p from periods where workspace_id = w;
  if not found then
    return row (w, at, '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}')::periods;
  end if;
  if p.at > at and p.at < at + interval '1 minute' then
    return p;
  end if;
  for u in 1..4 loop
    if date_trunc(units[u], p.at, 'UTC') <> date_trunc(units[u], at, 'UTC') then
      p.requests[u] := 0;
      p.input_tokens[u] := 0;
      p.output_tokens[u] := 0;
      p.spent_micro[u] := 0;
    end if;
  end loop;
  p.at := at;
  return p;
end $$;
