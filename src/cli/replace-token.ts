import { existsSync } from "node:fs";
import { join } from "node:path";
import { replaceOperatorTokens } from "../admin/sign-in/tokens.ts";
import { dataDirOf } from "../config/data-dir.ts";
import { readDiscovery, writeDiscovery } from "../discovery/data-folder.ts";
import { startEmbedded } from "../store/embedded/embedded.ts";
import { openPool } from "../store/pool.ts";
import { databaseUrl } from "./database-url.ts";
import { CliError } from "./target.ts";

/**
 * Replaces the operator tokens in the database of DATABASE_URL or DATABASE_URL_FILE, or in the embedded Postgres of
 * DATA_DIR, which is started if no service runs. Where a service has stored its token in DATA_DIR, stores the new one
 * there.
 * @throws CliError that says what is wrong
 */
export async function replaceToken(): Promise<{ token: string; id: string; replaced: number }> {
  const url = databaseUrl();
  const dataDir = dataDirOf(process.env);
  if (!url && !existsSync(join(dataDir, "postgres"))) {
    throw new CliError(`There is no database: DATABASE_URL is not set, and ${dataDir} (DATA_DIR) holds no Postgres.`);
  }
  try {
    await using stack = new AsyncDisposableStack();
    const embedded = url ? undefined : await startEmbedded(dataDir, () => undefined);
    stack.defer(() => embedded?.stop());
    const pool = openPool(url || embedded?.url || "", { max: 1 });
    stack.defer(() => pool.end());
    const made = await replaceOperatorTokens(pool);
    if ((await readDiscovery(dataDir)).operatorToken) await writeDiscovery(dataDir, { operatorToken: made.token });
    return made;
  } catch (error) {
    throw new CliError(error instanceof Error ? error.message : String(error));
  }
}
