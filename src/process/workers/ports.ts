import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { listenError } from "../../config/listen-error.ts";

/**
 * Finds the port for several workers: a free one for port 0. Workers share a port, so none of them would notice that
 * another program uses it.
 * @param names variables that set the address, for the error
 * @throws ConfigError when the address cannot be used
 */
export async function checkPort(names: string, address: { host: string; port: number }): Promise<number> {
  const server = createServer();
  try {
    server.listen({ host: address.host, port: address.port });
    await once(server, "listening");
  } catch (error) {
    throw listenError(names, address, error as NodeJS.ErrnoException);
  }
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
