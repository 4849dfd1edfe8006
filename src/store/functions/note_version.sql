-- Notes that another version of a model answers than before. What is known of the last four versions is kept, so that
-- a vendor who changes back and forth does not lose it; that of earlier ones is removed.
-- of_entry: fingerprint of the catalogue's entry. version: fingerprint of the entry with the version.
create or replace function note_version(of_model text, of_entry text, version text)
returns void language plpgsql as $$
declare
  gone text[];
begin
  insert into served_versions (model, entry, served, noted_at)
    values (of_model, of_entry, version, clock_timestamp())
    on conflict (model, entry, served) do update set noted_at = excluded.noted_at;
  with removed as (
    delete from served_versions v where v.model = of_model and v.entry = of_entry and v.served in (
      select o.served from served_versions o where o.model = of_model and o.entry = of_entry
      order by o.noted_at desc offset 4)
    returning v.served)
  select array_agg(served) into gone from removed;
  if gone is not null then
    delete from model_duels
      where (one = of_model and one_fingerprint = any (gone)) or (other = of_model and other_fingerprint = any (gone));
    delete from model_outcomes where model = of_model and fingerprint = any (gone);
  end if;
end $$;
