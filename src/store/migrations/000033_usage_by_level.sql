-- Answered requests and credits of each level, in the order low, medium, high. Null in rows from before this column.
alter table usage
  add column level_requests bigint[],
  add column level_credits_micro bigint[];
