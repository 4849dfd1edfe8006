import { test } from "vitest";
import { testDatabase } from "../helpers/database.ts";
import { checkDefect, keepBooks } from "./book-defects.ts";
import { LEDGER_DEFECTS } from "./ledger-defects.ts";
import { RESERVED_DEFECTS } from "./reserved-defects.ts";
import { SUBJECT_DEFECTS } from "./subject-defects.ts";

test("check_books finds each defect, and nothing else", async (t) => {
  const { pool } = await testDatabase(t);
  await keepBooks(pool.query);
  for (const defect of [...LEDGER_DEFECTS, ...RESERVED_DEFECTS, ...SUBJECT_DEFECTS]) {
    const undo = new Error("undone");
    await pool
      .tx(async (query) => {
        await checkDefect(query, defect);
        throw undo;
      })
      .catch((error: unknown) => {
        if (error !== undo) throw error;
      });
  }
});
