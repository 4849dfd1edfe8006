-- The kinds of subjects of a key's requests that can have caps: key, user, and tag:NAME for each such tag. Null: none.
create or replace function capped_kinds(w text, key_id text) returns text[] language sql stable as $$
  select array_agg(distinct split_part(case when starts_with(subject, 'tag:') then subject
      else split_part(subject, ':', 1) end, '=', 1))
  from caps
  where workspace_id = w and (not starts_with(subject, 'key:') or subject in ('key:' || key_id, 'key:*'))
$$;
