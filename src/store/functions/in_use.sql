-- What the running requests of a workspace hold in micro-credits, and their number, as far as replicas have said.
create or replace function in_use(w text, out held bigint, out running integer) language sql stable as $$
  select coalesce(sum(held_micro), 0)::bigint, coalesce(sum(running_now), 0)::integer from grants where workspace_id = w
$$;
