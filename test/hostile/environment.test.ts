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
const { status } = await fetch(environment.vendorEnv.OPENAI_BASE_URL);
console.log(row.is_migrated, status);
`;

test("the hostile suite starts its Postgres and its vendor without a run of tests", async () => {
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", SCRIPT], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: CHILD_ENV,
  });
  // The vendor answers: this is no path of its API.
  assert.equal(stdout, "true 404\n");
});
