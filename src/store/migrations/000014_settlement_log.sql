-- Settlements that are durable and not posted yet (docs/decisions/grants.md): the columns of `generations`, and what
-- the item of the replica says about its grant. A new column of `generations` is added here, too. The grant contains
-- the charges until they are posted.
create table settlement_log (
  like generations,
  replica text not null,                        -- whose grant it is
  seq bigint not null,                          -- of the item
  held_micro bigint not null,                   -- what running requests hold after it
  running_now bigint not null,                  -- their number
  used_requests bigint not null,                -- admitted since the previous item; 0 except in one row of an item
  used_input bigint not null,
  primary key (workspace_id, replica, seq, id)
);
