-- Replicas keep keys and tokens in memory until a message says that they have changed. A trigger sends the message, so
-- that a change by hand takes effect too. The function is replaced by functions/announce_secret.sql.
create function announce_secret() returns trigger language plpgsql as 'begin return null; end';

create trigger announce after update or delete on api_keys for each row execute function announce_secret();
create trigger announce after update or delete on owner_tokens for each row execute function announce_secret();
create trigger announce after update or delete on operator_tokens for each row execute function announce_secret();
