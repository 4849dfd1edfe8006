-- What the running requests of a workspace hold in micro-credits, and their number.
create or replace function in_use(w text, out held bigint, out running integer) language sql stable as $$
  select coalesce(max(held_micro), 0)::bigint, coalesce(max(running), 0)::integer from accounts where workspace_id = w
$$;
