-- Whether the text of a key's requests is kept.
create or replace function keeps_text(w text, key text) returns boolean language sql stable as $$
  select exists (select from workspaces where id = w and run_text_days is not null)
    and not exists (select from api_keys where workspace_id = w and id = key and forbids_text)
$$;
