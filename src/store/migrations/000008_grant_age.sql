-- When a grant was opened. A limit that was changed afterwards does not bind it.
alter table grants add column opened_at timestamptz not null default clock_timestamp();
