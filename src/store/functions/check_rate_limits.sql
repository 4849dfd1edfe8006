-- Checks one more request with its input tokens against the limits of a workspace. a and p: its account and its
-- counters, with the requests that run. running: their number. Returns null when the request is allowed, else a refusal
-- with the limit. A limit that no wait changes comes first, and has no retry_ms. Else the longest period comes first,
-- so that retry_ms is long enough for all limits that are reached.
create or replace function check_rate_limits(a accounts, p periods, running bigint, input_tokens bigint) returns jsonb
language plpgsql stable as $$
declare
  units constant text[] := array['minute', 'day', 'week', 'month'];
  u int;
  max_requests bigint;
  max_input bigint;
  max_output bigint;
  max_running constant bigint := a.limits ->> 'concurrent_requests';
  reached text;
  unmet text;
  refusal jsonb;
begin
  foreach u in array array[4, 2, 1] loop
    max_requests := a.limits ->> ('requests_per_' || units[u]);
    max_input := a.limits ->> ('input_tokens_per_' || units[u]);
    max_output := a.limits ->> ('output_tokens_per_' || units[u]);
    reached := case
      when p.requests[u] >= max_requests then 'requests_per_'
      when p.input_tokens[u] + input_tokens > max_input then 'input_tokens_per_'
      when p.output_tokens[u] >= max_output then 'output_tokens_per_' end || units[u];
    if reached is not null then
      unmet := case
        when max_requests < 1 then 'requests_per_'
        when input_tokens > max_input then 'input_tokens_per_'
        when max_output < 1 then 'output_tokens_per_' end || units[u];
      if unmet is not null then
        return jsonb_build_object('refusal', 'rate_limited', 'limit', unmet, 'never', true);
      end if;
      refusal := coalesce(refusal, jsonb_build_object('refusal', 'rate_limited', 'limit', reached,
        'retry_ms', ms_left_in_period(units[u], p.at, p.clock)));
    end if;
  end loop;
  if max_running < 1 then
    return '{"refusal": "rate_limited", "limit": "concurrent_requests", "never": true}';
  elsif running >= max_running then
    return coalesce(refusal, '{"refusal": "rate_limited", "limit": "concurrent_requests", "retry_ms": 1000}');
  end if;
  return refusal;
end $$;
