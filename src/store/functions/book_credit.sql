-- Books credit of a workspace, once for each reference. as_kind: grant or purchase. A negative grant takes granted
-- credit back, but not the part that is reserved: running requests were admitted against it and must not be paid from
-- purchased credit instead.
-- at: the current time; tests set it.
-- verdict: booked; earlier: the same was booked before under this reference; other: something else was; too_low: less
-- than the amount can be taken back; reserved: it can be taken back when replicas have returned what they do not use,
-- which they have been told; too_high: a balance would exceed a trillion credits.
create or replace function book_credit(w text, as_kind text, ref text, amount bigint, at timestamptz default null,
  out verdict text, out booked_at timestamptz, out granted bigint, out purchased bigint, out held bigint)
language plpgsql as $$
declare
  max_micro constant bigint := 1000000000000000000;
  a accounts%rowtype;
  b bookings%rowtype;
  to_granted bigint := case when as_kind = 'grant' then amount else 0 end;
  to_purchased bigint := case when as_kind = 'purchase' then amount else 0 end;
begin
  select * into strict a from accounts where workspace_id = w for update;
  select u.held into held from in_use(w) u;
  select * into b from bookings where workspace_id = w and reference = ref;
  if found then
    verdict := case when b.kind = as_kind and b.amount_micro = amount then 'earlier' else 'other' end;
    booked_at := b.at;
  elsif to_granted < 0 and -to_granted > greatest(0, a.granted_micro - held) then
    verdict := 'too_low';
  elsif to_granted < 0 and -to_granted > greatest(0, a.granted_micro - (
      select coalesce(sum(credit_micro), 0) from grants where workspace_id = w)) then
    verdict := 'reserved';
    perform call_back(w);
  elsif a.granted_micro + to_granted > max_micro or a.purchased_total_micro + to_purchased > max_micro then
    verdict := 'too_high';
  else
    verdict := 'booked';
    -- Reads the clock after the lock, so that the times of a workspace's ledger never decrease.
    booked_at := coalesce(at, clock_timestamp());
    insert into bookings (workspace_id, reference, kind, amount_micro, at) values (w, ref, as_kind, amount, booked_at);
    insert into ledger (workspace_id, at, kind, reference, granted_micro, purchased_micro)
      values (w, booked_at, case when amount < 0 then 'adjustment' else as_kind end, ref, to_granted, to_purchased);
    update accounts set granted_micro = granted_micro + to_granted, purchased_micro = purchased_micro + to_purchased,
        purchased_total_micro = purchased_total_micro + to_purchased
      where workspace_id = w returning * into a;
    if to_purchased > 0 then
      perform refresh_limits(w);
    end if;
  end if;
  granted := a.granted_micro;
  purchased := a.purchased_micro;
end $$;
