-- Finds the grants of a replica, and also one of them: Postgres can prefer this index to the primary key while the
-- statistics say that the table is small, and would then read all grants of the replica.
drop index grants_replica;
create index grants_replica on grants (replica, workspace_id);
