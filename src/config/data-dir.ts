import { resolve } from "node:path";

/** Path of the folder that DATA_DIR names. */
export function dataDirOf(env: Readonly<Record<string, string | undefined>>): string {
  return resolve(env.DATA_DIR || ".chorus");
}
