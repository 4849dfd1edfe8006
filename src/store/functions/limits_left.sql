-- Limits of a workspace and what its counters leave of each, by the name of the limit: {"requests_per_minute":[60,12]}.
-- a, r: the account, and the counters with what is reserved. Returns null for a workspace without limits.
create or replace function limits_left(a accounts, r periods) returns jsonb language sql immutable as $$
  select jsonb_object_agg(x.name, jsonb_build_array(x.most, x.most - x.used))
  from (select name, used, (a.limits ->> name)::bigint as most
    from unnest(array['requests_per_minute', 'requests_per_day', 'requests_per_month',
        'input_tokens_per_minute', 'input_tokens_per_day', 'input_tokens_per_month', 'output_tokens_per_minute',
        'output_tokens_per_day', 'output_tokens_per_month'],
      array[r.requests[1], r.requests[2], r.requests[4], r.input_tokens[1], r.input_tokens[2], r.input_tokens[4],
        r.output_tokens[1], r.output_tokens[2], r.output_tokens[4]]) as y (name, used)) x
  where x.most is not null
$$;
