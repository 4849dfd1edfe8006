import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";

const SCRIPT = `
import { startEnvironment } from "./hostile/environment.ts";
await using environment = await startEnvironment();
const [row] = await environment.database.pool.query("select count(*) > 0 as is_migrated from chorus_migrations");
console.log(row.is_migrated, environment.vendorEnv.OPENAI_BASE_URL !== "");
`;

test("the hostile suite starts its Postgres and its vendor without a run of tests", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", SCRIPT], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: CHILD_ENV,
  });
  assert.equal(stdout, "true true\n");
});
