import { constants, enableCompileCache } from "node:module";
import { join } from "node:path";
import { dataDirOf } from "../config/data-dir.ts";
import { makeFolder } from "../files/folder.ts";

/**
 * Keeps the modules that Node loads from now on, without types and compiled, in DATA_DIR, for the next start and for
 * threads. They are written when the process ends. Without them a start takes twice the time. NODE_COMPILE_CACHE names
 * another folder, and NODE_DISABLE_COMPILE_CACHE=1 turns this off. A folder that cannot be written does no harm.
 */
export async function keepCompiled(env: NodeJS.ProcessEnv): Promise<void> {
  const folder = join(dataDirOf(env), "compiled");
  if (env.NODE_COMPILE_CACHE || env.NODE_DISABLE_COMPILE_CACHE) return;
  try {
    // The embedded Postgres needs a DATA_DIR that its user can pass through.
    await makeFolder(dataDirOf(env), 0o711);
  } catch {
    // The start says what is wrong with DATA_DIR, if it matters.
    return;
  }
  const { status } = enableCompileCache(folder);
  // Threads and worker processes read the variable.
  if (status === constants.compileCacheStatus.ENABLED) env.NODE_COMPILE_CACHE = folder;
}
