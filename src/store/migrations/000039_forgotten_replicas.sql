-- Until this version, a replica that had been dead for a day was forgotten before its grants were ended. Those that
-- were left then are found again, and their grants end as those of any dead replica.
insert into replicas (id, beat_at)
select distinct g.replica, clock_timestamp() from grants g
where not exists (select from replicas r where r.id = g.replica)
on conflict do nothing;
