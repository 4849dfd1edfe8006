-- Whether all posts of an item of exchange() are in the database.
create or replace function is_posted(w text, posts jsonb) returns boolean language sql stable as $$
  select not exists (
    select from jsonb_to_recordset(posts) as i (id text, created_at timestamptz)
    where not exists (
      select from generations g where g.workspace_id = w and g.created_at = i.created_at and g.id = i.id))
$$;
