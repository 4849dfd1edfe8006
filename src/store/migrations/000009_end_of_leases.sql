--! breaking-change
-- Grants replace leases. Requests that run while this is applied are not charged.
insert into ledger (workspace_id, at, kind, reference, held_micro)
  select workspace_id, clock_timestamp(), 'release', request_id, -hold_micro from leases;
drop table leases;
-- What requests hold is in `grants`.
alter table accounts drop column held_micro, drop column running;
