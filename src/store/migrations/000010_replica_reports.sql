-- What each replica has last reported about itself and its models, for operators. A report is of use for some seconds,
-- so it need not survive a crash of the database.
create unlogged table replica_reports (
  replica text primary key,
  at timestamptz not null,
  report jsonb not null
);
