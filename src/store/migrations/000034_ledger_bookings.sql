-- Lists the bookings of operators, which are few among the settlements. A settlement adds nothing to it.
create index ledger_bookings on ledger (workspace_id, at, id) where kind in ('grant', 'purchase', 'adjustment');
