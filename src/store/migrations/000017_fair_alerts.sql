-- Whose turn it is to send an alert: that of the workspace whose last attempt is the oldest.
alter table alert_rules add column sent_at timestamptz;  -- start of the last attempt; null: there was none
