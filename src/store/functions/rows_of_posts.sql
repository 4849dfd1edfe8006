-- Rows of `generations` in posts of exchange(), for the log. Leaves out the kept responses, which can be long.
create or replace function rows_of_posts(posts jsonb) returns json language sql immutable as $$
  select json_agg(post - 'response') from jsonb_array_elements(posts) as post
$$;
