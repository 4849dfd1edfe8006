-- Lists the changes of all workspaces and of the service together, newest first.
create index audit_time on audit (at, id);
