-- Keeps the responses of posts for their idempotency keys, and frees the keys of requests without a response.
-- posts: as in exchange().
create or replace function keep_responses(w text, posts jsonb) returns void
language plpgsql as $$
declare
  post record;
begin
  for post in select i.* from jsonb_to_recordset(posts) as i (request_id text, key text, response text)
      where i.key is not null loop
    if post.response is null then
      delete from idempotency i
        where i.workspace_id = w and i.key = decode(post.key, 'hex') and i.request_id = post.request_id;
    else
      update idempotency i set response = decode(post.response, 'base64')
        where i.workspace_id = w and i.key = decode(post.key, 'hex') and i.request_id = post.request_id;
    end if;
  end loop;
end $$;
