-- Keeps the text of runs, of each workspace the first ones of a day (UTC), where it may be kept now: a replica can have
-- asked before a change of the setting.
-- items: [{"workspace_id", "key_id", "began_at", "id", "key_name", "sealed" in base64}].
-- most: bytes of a workspace on one day. Returns how many were kept.
create or replace function keep_run_texts(items json, most bigint) returns bigint
language plpgsql set enable_seqscan = off set plan_cache_mode = force_generic_plan as $$
declare
  n bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  -- No text is written after the one who ends it has deleted all.
  perform from workspaces
    where id in (select i.workspace_id from json_to_recordset(items) as i (workspace_id text))
    for share;
  with allowed as materialized (
    select i.workspace_id, i.began_at, i.id, i.key_name, decode(i.sealed, 'base64') as sealed,
      (i.began_at at time zone 'UTC')::date as day
    from json_to_recordset(items) as i (workspace_id text, key_id text, began_at timestamptz, id text, key_name text,
      sealed text)
    where keeps_text(i.workspace_id, i.key_id)
  ), sized as materialized (
    select *, sum(octet_length(sealed)) over (partition by workspace_id, day order by id) as up_to from allowed
  ), added as materialized (
    select workspace_id, day, sum(octet_length(sealed)) as bytes from allowed group by 1, 2
  ), counted as (
    -- In one order, so that two replicas do not wait for each other.
    insert into run_counts as old (workspace_id, day, runs, text_bytes)
    select workspace_id, day, 0, bytes from added order by 1, 2
    on conflict (workspace_id, day) do update set text_bytes = old.text_bytes + excluded.text_bytes
    returning workspace_id, day, text_bytes
  ), kept as (
    insert into run_texts
    select s.workspace_id, s.began_at, s.id, s.key_name, s.sealed
    from sized s join added a using (workspace_id, day) join counted c using (workspace_id, day)
    where c.text_bytes - a.bytes + s.up_to <= most
    on conflict do nothing
    returning 1
  )
  select count(*) into n from kept;
  return n;
end $$;
