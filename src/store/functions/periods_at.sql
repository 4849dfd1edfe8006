-- The counters of a workspace when the clock reads `reading`: those of periods that have ended are 0. Writes nothing.
--
-- p.at is the time of the windows. It never decreases while the clock steps back by up to a day, so that no window that
-- has been entered is left backwards and opened again:
-- - The clock is at or after p.at: p.at follows it.
-- - The clock is behind p.at: p.at advances at half the speed of the clock until the clock has caught up. So callers
--   are not locked out: a window lasts at most three times its length, and p.at agrees with the clock after at most
--   twice the step. p.clock is the last reading, from which the advance is computed.
-- - The clock is behind by more than a day: p.at becomes the time of the clock and the counters are kept, because p.at
--   would differ from the clock for too long. A window is then too short for once, and `chorus check` can report that
--   the sums of the current periods differ from the ledger until these periods end.
-- A step forward cannot be told from a time without requests; it opens windows once.
create or replace function periods_at(w text, reading timestamptz) returns periods language plpgsql as $$
declare
  p periods%rowtype;
  units constant text[] := array['minute', 'day', 'week', 'month'];
  behind interval;
  next timestamptz;
begin
  select * into p from periods where workspace_id = w;
  if not found then
    return row (w, reading, '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}', '{0,0,0,0}', reading)::periods;
  end if;
  behind := p.at - reading;
  next := case
    when behind > interval '1 day' then reading
    when behind > interval '0' then p.at + greatest(reading - p.clock, interval '0') / 2
    else reading end;
  -- No window has ended within a minute.
  for u in 1..case when next < date_trunc('minute', p.at, 'UTC') + interval '1 minute' then 0 else 4 end loop
    if date_trunc(units[u], next, 'UTC') > date_trunc(units[u], p.at, 'UTC') then
      p.requests[u] := 0;
      p.input_tokens[u] := 0;
      p.output_tokens[u] := 0;
      p.spent_micro[u] := 0;
    end if;
  end loop;
  p.at := next;
  p.clock := reading;
  return p;
end $$;
