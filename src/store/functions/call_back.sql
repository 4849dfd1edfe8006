-- Tells the replicas that have reserved headroom of workspaces to return what they do not use. They get the message
-- when the transaction is committed.
create or replace function call_back(variadic ws text[]) returns void language sql as $$
  select pg_notify('chorus_call_back', workspace_id) from grants where workspace_id = any (ws) group by workspace_id
$$;
