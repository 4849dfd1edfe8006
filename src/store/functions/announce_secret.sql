-- Trigger of the tables of secrets: tells all replicas that the secret with this hash may have changed, so that they
-- look it up again (src/admission/secret-cache.ts).
create or replace function announce_secret() returns trigger language plpgsql as $$
begin
  perform pg_notify('chorus_secrets', encode(old.secret_hash, 'hex'));
  return null;
end $$;
