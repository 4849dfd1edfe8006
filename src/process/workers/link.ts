import cluster from "node:cluster";
import type { Telemetry } from "../../telemetry/telemetry.ts";
import {
  EMBEDDED_VARIABLE,
  type FromPrimary,
  type FromWorker,
  PLACE_VARIABLE,
  REPLACES_VARIABLE,
  type WorkerReady,
} from "./messages.ts";

/**
 * The connection of a worker to the primary process. The worker ends when the primary process has ended.
 * @returns undefined in a process that is no worker
 */
export function linkToPrimary(host: NodeJS.Process) {
  if (!cluster.isWorker) return undefined;
  const replaces = host.env[REPLACES_VARIABLE] !== undefined;
  const waiting = new Map<number, (text: string | undefined) => void>();
  let own: Telemetry | undefined;
  let reload: (() => void) | undefined;
  let allReady = replaces;
  let last = 0;
  const send = (message: FromWorker): Promise<void> =>
    new Promise((resolve) => {
      if (host.connected) host.send?.(message, undefined, undefined, () => resolve());
      else resolve();
    });

  // A terminal sends it to all processes of the service. The primary process asks for the reload.
  host.on("SIGHUP", () => undefined);
  host.on("message", (message: FromPrimary) => {
    if (message.type === "all_ready") allReady = true;
    else if (message.type === "reload") reload?.();
    else if (message.type === "snapshot") {
      void own?.snapshot().then((metrics) => send({ type: "snapshot", id: message.id, metrics }));
    } else if (message.type === "collected") {
      waiting.get(message.id)?.(message.text);
      waiting.delete(message.id);
    }
  });

  return {
    /** Number of this worker's place, from 1. */
    place: Number(host.env[PLACE_VARIABLE]),
    /** Whether other workers serve already. Then this one listens only when it is ready. */
    replaces,
    /** Whether the workers use the embedded Postgres. */
    embedded: host.env[EMBEDDED_VARIABLE] !== undefined,
    /** Whether every worker of the start has become ready. */
    get allReady(): boolean {
      return allReady;
    },
    ready: (ready: WorkerReady) => void send({ type: "ready", ready }),
    /** Calls `handler` when the primary process got SIGHUP. */
    onReload(handler: () => void): void {
      reload = handler;
    },
    /** Reports why the start has failed. Resolves when the message is on its way. */
    failed: (message: string) => send({ type: "failed", message }),
    /** Answers the primary process with the metrics of this worker, and collects those of all workers as one text. */
    metrics(telemetry: Telemetry): Pick<Telemetry, "text"> {
      own = telemetry;
      return {
        text() {
          const id = ++last;
          const { promise, resolve, reject } = Promise.withResolvers<string>();
          waiting.set(id, (sum) => (sum === undefined ? reject(new Error("no metrics")) : resolve(sum)));
          void send({ type: "collect", id });
          return promise;
        },
      };
    },
  };
}
