-- What grows with use is split by month, so that nothing on the request path grows with history and old rows go with their part.
-- src/store/partitions.ts makes and drops the parts; whatever finds none waits in the part `…_rest`. There is one level of parts only,
-- because Citus, which spreads tables by workspace, takes no parts of parts.

alter table generations rename to generations_rest;
alter table generations_rest rename constraint generations_pkey to generations_rest_pkey;
create table generations (like generations_rest including all) partition by range (created_at);
alter table generations attach partition generations_rest default;

-- Minutes are split and dropped; hours and days are few, and kept for good. The bounds are values on purpose: where a bound of several
-- columns ends in maxvalue, Postgres 18 takes the default part for empty in a search for a range of the last column.
alter table usage rename to usage_before;
alter table usage_before rename constraint usage_pkey to usage_before_pkey;
create table usage (like usage_before including all) partition by range (unit, start);
create table usage_day partition of usage for values from ('day', '-infinity') to ('hour', '-infinity');
create table usage_hour partition of usage for values from ('hour', '-infinity') to ('minute', '-infinity');
create table usage_minute_rest partition of usage default;
insert into usage select * from usage_before;
drop table usage_before;
