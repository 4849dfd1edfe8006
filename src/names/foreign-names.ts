import { type LookupAddress, promises } from "node:dns";
import { open } from "node:fs/promises";
import { isIP } from "node:net";
import { nameError, type Resolve } from "./resolve.ts";

/** Wait for an answer of a name server, and number of tries with each. */
const TRY = { timeout: 2_000, tries: 2 };
/** Longest look-up, in milliseconds. */
const TIMEOUT_MS = 5_000;

const HOSTS_FILE = process.platform === "win32" ? String.raw`C:\Windows\System32\drivers\etc\hosts` : "/etc/hosts";
const LOOPBACK: readonly LookupAddress[] = [
  { address: "127.0.0.1", family: 4 },
  { address: "::1", family: 6 },
];

/**
 * Resolves names that others have chosen. It asks the name servers itself (c-ares), on the event loop, so a name that
 * resolves slowly takes no thread from other look-ups. /etc/hosts and `localhost` count, as everywhere; search domains
 * and other sources of names that only this machine knows do not. Nothing is cached.
 * @param servers addresses of name servers, with a port if it is not 53; empty: those of the machine
 */
export function createForeignNames(servers: readonly string[]): Resolve {
  return async (host) => {
    const name = host.toLowerCase().replace(/\.$/, "");
    const listed = await addressesInFile(name);
    if (listed.length > 0) return listed;
    if (/(?:^|\.)localhost$/.test(name)) return LOOPBACK;
    // Each look-up has its own: it reads the current configuration of the machine, and can be cancelled alone.
    const resolver = new promises.Resolver(TRY);
    if (servers.length > 0) resolver.setServers(servers);
    const timer = setTimeout(() => resolver.cancel(), TIMEOUT_MS);
    try {
      const [v4, v6] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
      const found = [...addressesOf(v4, 4), ...addressesOf(v6, 6)];
      if (found.length > 0) return found;
      throw nameError(codeOf(v4), name);
    } finally {
      clearTimeout(timer);
    }
  };
}

/** Addresses of a name in /etc/hosts. A file that cannot be read is empty. */
async function addressesInFile(name: string): Promise<LookupAddress[]> {
  const found: LookupAddress[] = [];
  try {
    await using file = await open(HOSTS_FILE);
    for await (const line of file.readLines({ autoClose: false })) {
      const [address = "", ...names] = line.replace(/#.*/, "").trim().toLowerCase().split(/\s+/);
      const family = isIP(address);
      if (family !== 0 && names.includes(name)) found.push({ address, family });
    }
  } catch {
    return [];
  }
  return found;
}

function addressesOf(result: PromiseSettledResult<string[]>, family: 4 | 6): LookupAddress[] {
  return result.status === "fulfilled" ? result.value.map((address) => ({ address, family })) : [];
}

function codeOf(result: PromiseSettledResult<string[]>): string {
  const code = result.status === "rejected" ? String(result.reason.code) : "ENOTFOUND";
  return code === "ECANCELLED" ? "ETIMEOUT" : code;
}
