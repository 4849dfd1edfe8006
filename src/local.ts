import { randomUUID } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** What the command line needs in order to find a service that runs beside it. */
export interface LocalService {
  /** Address of the internal listener. */
  rpcUrl?: string;
  operatorToken?: string;
}

/** The file under DATA_DIR in which a service leaves its address and, if it knows it, its operator token. */
export function localFile(dataDir: string): string {
  return join(dataDir, "service.json");
}

/** Reads what a service left under `dataDir`; empty when there is nothing. */
export async function readLocal(dataDir: string): Promise<LocalService> {
  try {
    return JSON.parse(await readFile(localFile(dataDir), "utf8"));
  } catch {
    return {};
  }
}

/** Adds to what stands under `dataDir`. The file is replaced whole and can be read by its owner only. */
export async function writeLocal(dataDir: string, facts: LocalService): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  const text = JSON.stringify({ ...(await readLocal(dataDir)), ...facts });
  const fresh = `${localFile(dataDir)}.${randomUUID()}`;
  await writeFile(fresh, `${text}\n`, { mode: 0o600 });
  await rename(fresh, localFile(dataDir));
}
