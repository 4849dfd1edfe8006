import type { Config } from "./config/config.ts";
import { keepRpcUrl, writeDiscovery } from "./discovery.ts";
import { type Greeting, greeting } from "./greeting.ts";
import { errorFacts, type Log } from "./log.ts";

/**
 * Writes the addresses and the operator token where the command line on this machine finds them, and prints the
 * greeting.
 */
export async function announce(
  { dataDir, operatorToken: given }: Pick<Config, "dataDir" | "operatorToken">,
  log: Log,
  stack: AsyncDisposableStack,
  facts: Omit<Greeting, "dataDir">,
): Promise<void> {
  try {
    const operatorToken = facts.secrets.operatorToken ?? given;
    await writeDiscovery(dataDir, { restUrl: facts.restUrl, ...(operatorToken ? { operatorToken } : {}) });
    const address = await keepRpcUrl(dataDir, facts.rpcUrl);
    stack.defer(() => address.stop());
  } catch (error) {
    // A replica without a writable disk serves requests all the same.
    log.warn({ cause: errorFacts(error) }, "could not write to DATA_DIR; the command line will not find this service");
  }
  process.stdout.write(greeting({ ...facts, dataDir }));
}
