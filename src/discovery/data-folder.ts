import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { makeFolder } from "../files/folder.ts";

/** What the command line needs to find a service on the same machine. */
interface DiscoveredService {
  /** Address of the internal listener. */
  rpcUrl?: string;
  /** Address of the public listener. */
  restUrl?: string;
  operatorToken?: string;
}

// One file per value, so that services that start at the same time do not overwrite each other's values.
const rpcUrlFile = (dataDir: string) => join(dataDir, "rpc_url");
const restUrlFile = (dataDir: string) => join(dataDir, "rest_url");

/** The file under DATA_DIR to which a service writes its operator token, if it knows it. */
export function operatorTokenFile(dataDir: string): string {
  return join(dataDir, "operator_token");
}

/** Reads what services have written under `dataDir`; values that were not written are absent. */
export async function readDiscovery(dataDir: string): Promise<DiscoveredService> {
  const files = [rpcUrlFile, restUrlFile, operatorTokenFile];
  const [rpcUrl, restUrl, operatorToken] = await Promise.all(files.map((file) => read(file(dataDir))));
  return {
    ...(rpcUrl ? { rpcUrl } : {}),
    ...(restUrl ? { restUrl } : {}),
    ...(operatorToken ? { operatorToken } : {}),
  };
}

/** Writes values under `dataDir`, in files that only their owner can read. Absent values stay unchanged. */
export async function writeDiscovery(
  dataDir: string,
  { rpcUrl, restUrl, operatorToken }: DiscoveredService,
): Promise<void> {
  await makeFolder(dataDir);
  if (rpcUrl) await writePrivateFile(rpcUrlFile(dataDir), rpcUrl);
  if (restUrl) await writePrivateFile(restUrlFile(dataDir), restUrl);
  if (operatorToken) await writePrivateFile(operatorTokenFile(dataDir), operatorToken);
}

/** How often a service checks that the stored address is that of a service which runs, in milliseconds. */
const CHECK_MS = 2_000;

/**
 * Stores the addresses of a service under `dataDir` until `stop`. A service that starts later in the same folder
 * replaces them; when that service has ended, this one stores its addresses again.
 */
export async function keepAddresses(
  dataDir: string,
  addresses: Required<Pick<DiscoveredService, "rpcUrl" | "restUrl">>,
): Promise<{ stop(): Promise<void> }> {
  const file = rpcUrlFile(dataDir);
  const { rpcUrl } = addresses;
  await writeDiscovery(dataDir, addresses);
  const restore = async () => {
    const stored = await read(file);
    const isGone = stored === undefined || (stored !== rpcUrl && (await isRefused(stored)));
    if (isGone && !isStopped) await writeDiscovery(dataDir, addresses);
  };
  let isStopped = false;
  // The service continues when the disk is full or unavailable.
  const timer = setInterval(() => void restore().catch(() => undefined), CHECK_MS).unref();
  return {
    async stop() {
      isStopped = true;
      clearInterval(timer);
      if ((await read(file)) === rpcUrl) await rm(file, { force: true });
    },
  };
}

/** Whether nothing listens at an address, because its service was killed. */
async function isRefused(address: string): Promise<boolean> {
  const { hostname, port = "" } = URL.parse(address) ?? {};
  if (!hostname) return true;
  const socket = connect({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  try {
    await once(socket, "connect", { signal: AbortSignal.timeout(CHECK_MS) });
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ECONNREFUSED";
  } finally {
    socket.on("error", () => undefined).destroy();
  }
}

/**
 * Replaces the address "all interfaces" in a listener's URL with the loopback address, which works from this machine.
 */
export function reachableUrl(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

async function read(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").then(
    (text) => text.trim(),
    () => undefined,
  );
}

/**
 * Checks that `writePrivateFile` can write a file.
 * @param variable names the file in the error
 * @throws Error naming the variable, the cause and what to do
 */
export async function checkPrivateFile(variable: string, file: string): Promise<void> {
  const probe = `${file}.${randomUUID()}`;
  try {
    await makeFolder(dirname(file));
    await writeFile(probe, "", { mode: 0o600 });
    await rm(probe, { force: true });
    if (await isFolder(file)) throw Object.assign(new Error(), { code: "EISDIR" });
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown";
    throw new Error(
      `${variable}: ${file} cannot be written (${code}). Name a file in a folder that can be written to.`,
    );
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

/** Replaces a file atomically, so that no reader sees a part of it. Only its owner can read it. */
export async function writePrivateFile(file: string, text: string): Promise<void> {
  const temporary = `${file}.${randomUUID()}`;
  await writeFile(temporary, `${text}\n`, { mode: 0o600 });
  await rename(temporary, file);
}
