import { once } from "node:events";
import { type AddressInfo, createServer, type ListenOptions, type Server } from "node:net";
import { platform } from "node:os";
import { listenError } from "../../config/listen-error.ts";

/**
 * Finds the port for several workers: a free one for port 0. Workers share a port, so none of them would notice that
 * another program uses it. The port is claimed until this process ends: of two services that start at the same time,
 * the kernel would let the workers of both share it.
 * @param names variables that set the address, for the error
 * @throws ConfigError when the address cannot be used
 */
export async function claimPort(names: string, address: { host: string; port: number }): Promise<number> {
  try {
    for (;;) {
      const server = await listening({ host: address.host, port: address.port });
      const { address: ip, port } = server.address() as AddressInfo;
      server.close();
      await once(server, "close");
      if (await claim(`${ip}:${port}`)) return port;
      // Of two services that have found the same free port, this one looks for another.
      if (address.port !== 0) throw Object.assign(new Error("The port is claimed."), { code: "EADDRINUSE" });
    }
  } catch (error) {
    throw listenError(names, address, error as NodeJS.ErrnoException);
  }
}

/**
 * Claims an address by a socket in Linux's abstract namespace, which goes with the process. Elsewhere the primary
 * process listens itself.
 * @returns false if another service has claimed it; true also where the system allows no such socket
 */
async function claim(address: string): Promise<boolean> {
  if (platform() !== "linux") return true;
  try {
    (await listening({ path: `\0chorus/${address}` })).unref();
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "EADDRINUSE";
  }
}

/** Listens, and closes each connection. */
async function listening(options: ListenOptions): Promise<Server> {
  const server = createServer((socket) => socket.destroy()).listen(options);
  await once(server, "listening");
  return server;
}
