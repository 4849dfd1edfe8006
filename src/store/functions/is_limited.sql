-- Whether a workspace has a limit on requests, input_tokens or output_tokens, in any window.
create or replace function is_limited(a accounts, name text) returns boolean language sql immutable as $$
  select a.limits ?| array[name || '_per_minute', name || '_per_day', name || '_per_month']
$$;
