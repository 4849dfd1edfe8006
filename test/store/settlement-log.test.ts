import assert from "node:assert/strict";
import { test } from "../helpers/fixtures.ts";

test("keeps every column of generations in the log, and posts it", async ({ database: { pool } }) => {
  const columns = (table: string) =>
    pool.query<{ name: string }>(
      `select attname as name, format_type(atttypid, atttypmod) as type, attnotnull as required
      from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attname`,
      [table],
    );
  const generations = await columns("generations");
  const names = generations.map(({ name }) => name);
  const logged = (await columns("settlement_log")).filter(({ name }) => names.includes(name));
  assert.deepEqual(logged, generations);

  const [{ source = "" } = {}] = await pool.query<{ source: string }>(
    "select prosrc as source from pg_proc where proname = 'post_settlements'",
  );
  const lists = /insert into generations \((.*?)\)\s*select (.*?)\s*from item/s.exec(source)?.slice(1) ?? [];
  const [inserted, selected] = lists.map((list) => list.split(/,\s*/));
  assert.deepEqual(inserted?.toSorted(), names);
  assert.deepEqual(selected, inserted);
});
