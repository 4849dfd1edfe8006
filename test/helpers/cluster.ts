import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { ask, RUN_VARIABLE } from "./run.ts";

/**
 * Puts a new database that no server has opened into a data folder, with the owner that its server needs. Does nothing
 * outside a run of tests, such as in the hostile suite: the server then makes its database itself.
 */
export async function copyCluster(dataDir: string): Promise<void> {
  if (process.env[RUN_VARIABLE] === undefined) return;
  await promisify(execFile)("cp", ["-a", join(await ask("cluster"), "postgres"), dataDir]);
}
