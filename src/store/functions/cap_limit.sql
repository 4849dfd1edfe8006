-- The limit of a cap as refusals and alerts name it, such as user:credits_per_day and tag.team:requests_total.
create or replace function cap_limit(subject text, figure text, period text) returns text language sql immutable as $$
  select case when starts_with(subject, 'tag:') then 'tag.' || split_part(substr(subject, 5), '=', 1)
      else split_part(subject, ':', 1) end || ':' || figure
    || case period when '' then '' when 'total' then '_total' else '_per_' || period end
$$;
