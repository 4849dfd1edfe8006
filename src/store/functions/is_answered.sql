-- Whether a request that ended with this outcome gave an answer, whole or in part. Usage counts the others as failed. A
-- streamed request whose caller went away has given a part; a unary one has given nothing.
create or replace function is_answered(outcome text, streamed boolean) returns boolean language sql immutable as $$
  select outcome in ('ok', 'cut_short') or (outcome = 'caller_gone' and streamed)
$$;
