-- Reading of the database's clock when `at` was computed (functions/periods_at.sql). Null in rows that earlier versions
-- wrote: the same as `at`.
alter table periods add column clock timestamptz;
