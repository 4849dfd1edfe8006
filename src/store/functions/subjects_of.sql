-- The subjects of a request beside its key: its end user and its tags, as in `usage_subjects`.
create or replace function subjects_of(end_user text, tags jsonb) returns table (subject text)
language sql immutable rows 2 as $$
  select 'user:' || end_user where end_user is not null
  union all
  select 'tag:' || t.key || '=' || t.value from jsonb_each_text(tags) t
$$;
