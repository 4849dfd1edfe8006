-- The result of periods_at() as one row for each of minute, day, week and month, for queries.
create or replace function current_periods(w text, at timestamptz)
returns table (
  unit text, start timestamptz, requests bigint, input_tokens bigint, output_tokens bigint, spent_micro bigint)
language sql as $$
  select x.unit, date_trunc(x.unit, p.at, 'UTC'), x.requests, x.input, x.output, x.spent
  from periods_at(w, at) p,
       unnest(array['minute', 'day', 'week', 'month'], p.requests, p.input_tokens, p.output_tokens, p.spent_micro)
         as x (unit, requests, input, output, spent)
$$;
