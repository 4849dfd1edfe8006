-- Keeps the responses of posts for their idempotency keys, and frees the keys of requests without a response. A key
-- that a crash of the server has lost is taken again for a post whose answer has been delivered.
-- posts: as in exchange(), or its freed.
create or replace function keep_responses(w text, posts jsonb) returns void
language plpgsql as $$
declare
  post record;
begin
  for post in select i.* from jsonb_to_recordset(posts) as i (request_id text, created_at timestamptz, key text,
      body text, response text, admitted_by text) where i.key is not null loop
    if post.response is null then
      delete from idempotency i
        where i.workspace_id = w and i.key = decode(post.key, 'hex') and i.request_id = post.request_id
          and i.response is null;
    else
      update idempotency i set response = decode(post.response, 'base64')
        where i.workspace_id = w and i.key = decode(post.key, 'hex') and i.request_id = post.request_id;
      if not found and post.admitted_by is not null then
        insert into idempotency (workspace_id, key, body, request_id, response, expires_at)
          values (w, decode(post.key, 'hex'), decode(post.body, 'hex'), post.request_id,
            decode(post.response, 'base64'), post.created_at + interval '24 hours')
          on conflict (workspace_id, key) do nothing;
      end if;
    end if;
  end loop;
end $$;
