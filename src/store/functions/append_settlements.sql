-- Calls append_settlement() for each item.
-- items: [{"workspace", "seq", "grant", "after", "held", "running_now", "used_requests", "used_input", "credits",
-- "output", "posts", "subjects"?}].
-- Returns the workspaces whose items are in the log, or have been. The grants of the others have ended.
create or replace function append_settlements(by_replica text, items json) returns text[] language plpgsql as $$
declare
  i record;
  appended text[] := '{}';
begin
  for i in select * from json_to_recordset(items) as i (workspace text, seq bigint, "grant" bigint, after bigint,
      held bigint, running_now bigint, used_requests bigint, used_input bigint, credits bigint, output bigint,
      posts json, subjects json) order by workspace loop
    if append_settlement(by_replica, i.workspace, i.seq, i."grant", i.after, i.held, i.running_now, i.used_requests,
        i.used_input, i.credits, i.output, i.posts, i.subjects) then
      appended := appended || i.workspace;
    end if;
  end loop;
  return appended;
end $$;
