-- Whether all posts of an item of exchange() are in the database.
create or replace function is_posted(w text, posts jsonb) returns boolean language plpgsql stable as $$
declare
  post record;
begin
  -- One query for each, so that it reads one partition.
  for post in select * from jsonb_to_recordset(posts) as i (id text, created_at timestamptz) loop
    if not exists (select from generations g
        where g.workspace_id = w and g.created_at = post.created_at and g.id = post.id) then
      return false;
    end if;
  end loop;
  return true;
end $$;
