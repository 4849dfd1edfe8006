-- Keeps runs, of each workspace the first ones of a day (UTC).
-- items: [{"workspace_id", "began_at", "id", "record"}]. most: number of runs of a workspace on one day.
-- Returns the workspaces that have reached it.
-- A crash of the server may lose runs, so the commit does not wait for the disk. About its settings see exchange().
create or replace function keep_runs(items json, most bigint) returns text[]
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  filled text[];
begin
  perform set_config('synchronous_commit', 'off', true);
  with run as materialized (
    select r.*, (began_at at time zone 'UTC')::date as day,
      row_number() over (partition by workspace_id, (began_at at time zone 'UTC')::date order by id) as place
    from json_to_recordset(items) as r (workspace_id text, began_at timestamptz, id text, record json)
  ), added as materialized (
    select workspace_id, day, count(*) as n from run group by 1, 2
  ), counted as (
    -- In one order, so that two replicas do not wait for each other.
    insert into run_counts as old (workspace_id, day, runs) select workspace_id, day, n from added order by 1, 2
    on conflict (workspace_id, day) do update set runs = old.runs + excluded.runs
    returning workspace_id, day, runs
  ), kept as (
    insert into runs
    select r.workspace_id, r.began_at, r.id, r.record
    from run r join added a using (workspace_id, day) join counted c using (workspace_id, day)
    where c.runs - a.n + r.place <= most
    on conflict do nothing
  )
  select coalesce(array_agg(workspace_id), '{}') into filled from counted c where c.runs >= most;
  return filled;
end $$;
