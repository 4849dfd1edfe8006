import { listenError } from "../config/listen-error.ts";
import { reachableUrl } from "../discovery/data-folder.ts";
import type { InFlight } from "../generate/in-flight.ts";
import type { Services } from "../transport/call/services.ts";
import { createInternalListener } from "../transport/listeners/internal.ts";
import { createPublicServer } from "../transport/listeners/public.ts";
import { createLargeReader, type ThreadReader } from "../transport/reading/reader.ts";
import type { ConnectionOptions } from "../transport/socket/connections.ts";
import { listen, listenBoth } from "../transport/socket/listen.ts";
import type { Context } from "./context.ts";
import { drainServers } from "./shutdown.ts";

interface Servers extends Pick<ThreadReader, "warmUp"> {
  /** Addresses that work from this machine. */
  restUrl: string;
  rpcUrl: string;
}

/** Starts the public and the internal listener. */
export async function startServers(
  { primary, config, log, telemetry, stack }: Context,
  services: Services,
  inFlight: InFlight,
): Promise<Servers> {
  const { host, port } = config.public;
  const reader = createLargeReader();
  stack.defer(() => reader.close());
  const restServer = createPublicServer(services, config, log, telemetry, reader);
  const rest = await listen(restServer, host, port).catch((error) => {
    throw listenError("HOST and PORT", config.public, error);
  });
  stack.defer(() => rest.destroy());
  const metrics = primary?.metrics(telemetry) ?? telemetry;
  const handler = createInternalListener(services, config, log, telemetry, reader, metrics);
  const connections: ConnectionOptions = { max: config.connections.internal, onShed: telemetry.requestShed };
  const rpc = await listenBoth(handler, config.rpc.host, config.rpc.port, connections).catch((error) => {
    throw listenError("RPC_HOST and RPC_PORT", config.rpc, error);
  });
  stack.defer(() => drainServers([rest, rpc], inFlight, config.drainMs));
  return { restUrl: reachableUrl(rest.url), rpcUrl: reachableUrl(rpc.url), warmUp: reader.warmUp };
}
