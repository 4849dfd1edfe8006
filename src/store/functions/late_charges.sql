-- What settlements can be charged whose grant may have ended: the rest of that grant, and what no replica has reserved.
-- The replica that posts them, by_replica, knows that its own grant has ended: what it has now is another one.
-- posts: as in exchange(). a, p: the account, which the caller has locked with its grants, and the counters. Returns
-- posts with these charges, and {request_id: charge} for those that differ from the price.
create or replace function late_charges(a accounts, p periods, inout posts jsonb, by_replica text, out charges jsonb)
language plpgsql as $$
declare
  post jsonb;
  rest bigint;
  origin bigint;                                  -- the grant that admitted it, if it exists
  charge bigint;
  charged bigint := 0;                            -- not yet taken from the account
  result jsonb[] := '{}';
begin
  charges := '{}';
  for post in select * from jsonb_array_elements(posts) loop
    charge := post ->> 'credits_micro';
    if post ? 'admitted_by' and is_posted(a.workspace_id, jsonb_build_array(post)) then
      charge := 0;
    elsif post ? 'admitted_by' then
      select credit_micro, id into rest, origin from grants
        where workspace_id = a.workspace_id and replica = post ->> 'admitted_by' and replica <> by_replica;
      rest := coalesce(rest, 0);
      -- A key is charged once: another request has used it in the meantime.
      if exists (select from idempotency i where i.workspace_id = a.workspace_id
          and i.key = decode(post ->> 'key', 'hex') and i.request_id <> post ->> 'request_id') then
        charge := 0;
      end if;
      charge := least(charge, rest + greatest(0, credit_capacity(a, p) - charged - coalesce((
        select sum(credit_micro) from grants where workspace_id = a.workspace_id), 0)));
      charge := charge_under_caps(a.workspace_id, post, charge, p.at, origin);
      -- A late item of that replica would set it back. It finds another last item, so the grant has ended for it.
      update grants set seq = 0, credit_micro = rest - least(rest, charge),
          held_micro = least(held_micro, rest - least(rest, charge))
        where workspace_id = a.workspace_id and replica = post ->> 'admitted_by' and replica <> by_replica;
      if charge <> (post ->> 'credits_micro')::bigint then
        charges := charges || jsonb_build_object(post ->> 'request_id', charge::text);
        post := post || jsonb_build_object('credits_micro', charge);
      end if;
    end if;
    charged := charged + charge;
    result := result || post;
  end loop;
  posts := to_jsonb(result);
end $$;
