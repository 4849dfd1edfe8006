-- The use of all workspaces in the last hours. Hours are kept for years, and their rows are in the order of their time,
-- so that a summary of each few pages is enough; it is small, and no update of a row changes it.
create index usage_hour_start on usage_hour using brin (start) with (pages_per_range = 16);
