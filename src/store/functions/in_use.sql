-- What the running requests of a workspace hold in micro-credits, and their number, as far as replicas have said.
create or replace function in_use(w text, out held bigint, out running integer) language sql stable as $$
  select sum(u.held)::bigint, sum(u.running)::integer
  from (select held_micro, running from accounts where workspace_id = w
    union all select held_micro, running_now from grants where workspace_id = w
    union all select 0, 0) u (held, running)
$$;
