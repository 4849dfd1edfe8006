-- The log has one row for each item of a replica, not for each settlement: an append of many settlements is cheaper,
-- and of one, too. The columns of `generations` are read from `posts` when the log is posted.
alter table settlement_log rename to old_log;
alter index settlement_log_pkey rename to old_log_pkey;
create table settlement_log (
  workspace_id text not null,
  replica text not null,                        -- whose grant it is; empty: posted in the same transaction
  seq bigint not null,                          -- of the item
  credits_micro bigint not null,                -- sum of the charges, which the grant contains
  output_tokens bigint not null,                -- sum
  held_micro bigint not null,                   -- what running requests hold after it
  running_now bigint not null,                  -- their number
  used_requests bigint not null,                -- admitted since the previous item
  used_input bigint not null,
  posts json not null,                          -- rows of `generations` without the workspace
  primary key (workspace_id, replica, seq)
);
insert into settlement_log
select workspace_id, replica, seq, sum(credits_micro), sum(output_tokens), max(held_micro), max(running_now),
  sum(used_requests), sum(used_input), json_agg(l)
from old_log l group by 1, 2, 3;
drop table old_log;
