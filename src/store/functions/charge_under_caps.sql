-- Reserves what a settlement can be charged whose hold may have ended, as far as the caps on credits of its subjects
-- leave it beside the requests that run, until it is posted. Returns that charge.
-- post: as in exchange(). charge: what else allows. at: the time of the workspace's windows. origin: the grant that the
-- replica which admitted it still has, whose headroom of the subjects it may use up; null: none.
create or replace function charge_under_caps(w text, post jsonb, charge bigint, at timestamptz, origin bigint)
returns bigint language plpgsql as $$
declare
  subjects text[];
begin
  if not exists (select from caps c where c.workspace_id = w) then
    return charge;
  end if;
  subjects := array(select 'key:' || (post ->> 'key_id')
    union all select subject from subjects_of(post ->> 'end_user', nullif(post -> 'tags', 'null')));
  -- Its own hold is not in its way.
  delete from subject_holds h where h.workspace_id = w and h.request_id = post ->> 'request_id';
  select least(charge, min(greatest(0, u.amount - u.used - u.held - u.reserved) + coalesce((
      select g.credit_micro from subject_grants g
      where g.workspace_id = w and g.subject = s.subject and g.grant_id = origin), 0))) into charge
    from unnest(subjects) s (subject) cross join lateral cap_use(w, s.subject, at) u
    where u.figure = 'credits' and u.action = 'refuse';
  insert into subject_holds select w, post ->> 'request_id', s, 0, charge from unnest(subjects) s;
  update subject_grants g set credit_micro = greatest(0, g.credit_micro - charge)
    where g.workspace_id = w and g.subject = any (subjects) and g.grant_id = origin;
  return charge;
end $$;
