-- What can be charged: the granted credit, and of the purchased credit what the spend limits leave. In micro-credits.
create or replace function credit_capacity(a accounts, p periods) returns bigint language sql immutable as $$
  select a.granted_micro + greatest(0, least(a.purchased_micro,
    (a.spend_limits ->> 'day')::bigint - p.spent_micro[2],
    (a.spend_limits ->> 'week')::bigint - p.spent_micro[3],
    (a.spend_limits ->> 'month')::bigint - p.spent_micro[4]))
$$;
