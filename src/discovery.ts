import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What the command line needs in order to find a service that runs beside it. */
export interface DiscoveredService {
  /** Address of the internal listener. */
  rpcUrl?: string;
  operatorToken?: string;
}

// A file for each, so that services that start at the same time cannot undo each other's.
const rpcUrlFile = (dataDir: string) => join(dataDir, "rpc_url");

/** The file under DATA_DIR in which a service leaves its operator token, if it knows it. */
export function operatorTokenFile(dataDir: string): string {
  return join(dataDir, "operator_token");
}

/** Reads what services left under `dataDir`; empty when there is nothing. */
export async function readDiscovery(dataDir: string): Promise<DiscoveredService> {
  const [rpcUrl, operatorToken] = await Promise.all([rpcUrlFile, operatorTokenFile].map((file) => read(file(dataDir))));
  return { ...(rpcUrl ? { rpcUrl } : {}), ...(operatorToken ? { operatorToken } : {}) };
}

/** Leaves facts under `dataDir`, in files that their owner alone can read; what is not given stays as it was. */
export async function writeDiscovery(dataDir: string, { rpcUrl, operatorToken }: DiscoveredService): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  if (rpcUrl) await write(rpcUrlFile(dataDir), rpcUrl);
  if (operatorToken) await write(operatorTokenFile(dataDir), operatorToken);
}

/** How often a service looks whether its address is still there, in milliseconds. */
const LOOK_MS = 2_000;

/**
 * Keeps the address of a service under `dataDir`, where a younger service that shares the folder may replace it: when that one leaves, the
 * older one's stands there again.
 */
export async function keepRpcUrl(dataDir: string, rpcUrl: string): Promise<{ stop(): Promise<void> }> {
  const file = rpcUrlFile(dataDir);
  await writeDiscovery(dataDir, { rpcUrl });
  const look = async () => {
    if ((await read(file)) === undefined) await write(file, rpcUrl);
  };
  // A disk that is full or gone is no reason to stop answering.
  const timer = setInterval(() => void look().catch(() => undefined), LOOK_MS).unref();
  return {
    async stop() {
      clearInterval(timer);
      if ((await read(file)) === rpcUrl) await rm(file, { force: true });
    },
  };
}

async function read(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}

/** Replaces a file as a whole, so that nobody reads half of it. */
async function write(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}`;
  await writeFile(draft, `${text}\n`, { mode: 0o600 });
  await rename(draft, file);
}
