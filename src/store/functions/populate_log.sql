-- Rows of the log for posts of exchange() that say nothing about a grant.
create or replace function populate_log(w text, posts jsonb) returns setof settlement_log language sql stable as $$
  select * from jsonb_populate_recordset(jsonb_populate_record(null::settlement_log, jsonb_build_object(
    'workspace_id', w, 'replica', '', 'seq', 0, 'held_micro', 0, 'running_now', 0, 'used_requests', 0,
    'used_input', 0)), posts)
$$;
