import type { Config } from "../config/config.ts";
import { keepAddresses, writeDiscovery, writePrivateFile } from "../discovery/data-folder.ts";
import { addProfile } from "../discovery/profiles.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import { greeting } from "./greeting.ts";
import type { WorkerReady } from "./workers/messages.ts";

type Settings = Pick<Config, "databaseUrl" | "dataDir" | "operatorToken" | "secretsFile" | "models" | "catalogue">;

/**
 * Writes the addresses and the operator token where the command line on this machine finds them, and prints the
 * greeting. New secrets go to `secretsFile` if there is one, else into the greeting.
 * @param host the process of the service
 * @param stack takes what removes the address again
 */
export async function announce(
  host: NodeJS.Process,
  settings: Settings,
  log: Log,
  stack: AsyncDisposableStack,
  facts: WorkerReady,
): Promise<void> {
  const { databaseUrl, dataDir, operatorToken: given, secretsFile, models, catalogue } = settings;
  const { operatorToken = given } = facts.secrets;
  if (secretsFile) await writeSecrets(secretsFile, facts.secrets);
  try {
    if (operatorToken) await writeDiscovery(dataDir, { operatorToken });
    const addresses = await keepAddresses(dataDir, facts);
    stack.defer(() => addresses.stop());
  } catch (error) {
    // A replica without a writable disk still serves requests.
    log.warn({ cause: errorFacts(error) }, "could not write to DATA_DIR; the command line will not find this service");
  }
  if (databaseUrl === undefined) {
    // A service on one machine is found from any folder.
    const written = addProfile(host.env, "local", { dataDir });
    await written.catch((error: unknown) =>
      log.info({ cause: errorFacts(error) }, "could not write the profile local"),
    );
  }
  // Without a listener, the error would end the service.
  host.stdout.once("error", (error) =>
    log.error({ cause: errorFacts(error) }, "could not write to standard output; new secrets were not shown"),
  );
  const names = models.map(({ name }) => name);
  host.stdout.write(greeting({ ...facts, dataDir, secretsFile, catalogue, models: names }));
}

/** Writes new secrets as lines of an environment file. */
async function writeSecrets(file: string, { apiKey, operatorToken }: WorkerReady["secrets"]): Promise<void> {
  const lines = [
    ...(apiKey ? [`BOOTSTRAP_API_KEY=${apiKey}`] : []),
    ...(operatorToken ? [`OPERATOR_TOKEN=${operatorToken}`] : []),
  ];
  if (lines.length > 0) await writePrivateFile(file, lines.join("\n"));
}
