-- The subject of caps that hold for each subject of the same kind: user:* for user:ID, tag:NAME=* for tag:NAME=VALUE.
create or replace function template_of(subject text) returns text language sql immutable as $$
  select case when starts_with(subject, 'tag:') then split_part(subject, '=', 1) || '=*'
    else split_part(subject, ':', 1) || ':*' end
$$;
