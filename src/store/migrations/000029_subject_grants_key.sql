-- The primary key finds the rows of a grant, too. Without statistics, Postgres would prefer this index, and read all
-- rows of a grant for each of its subjects.
drop index subject_grants_grant;
