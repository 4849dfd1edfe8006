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

/** The connection of a worker to the primary process. The worker ends when the primary process has ended. */
export interface PrimaryLink {
  /** Number of this worker's place, from 1. */
  readonly place: number;
  /** Whether other workers serve already. Then this one listens only when it is ready. */
  readonly replaces: boolean;
  /** Whether the workers use the embedded Postgres. */
  readonly embedded: boolean;
  /** Whether every worker of the start has become ready. */
  readonly allReady: boolean;
  ready(ready: WorkerReady): void;
  /** Calls `reload` when the primary process got SIGHUP. */
  onReload(reload: () => void): void;
  /** Reports why the start has failed. Resolves when the message is on its way. */
  failed(message: string): Promise<void>;
  /** Answers the primary process with the metrics of this worker, and collects those of all workers as one text. */
  metrics(telemetry: Telemetry): { text(): Promise<string> };
}

/** @returns undefined in a process that is no worker */
export function linkToPrimary(host: NodeJS.Process): PrimaryLink | undefined {
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
    place: Number(host.env[PLACE_VARIABLE]),
    replaces,
    embedded: host.env[EMBEDDED_VARIABLE] !== undefined,
    get allReady() {
      return allReady;
    },
    ready: (ready) => void send({ type: "ready", ready }),
    onReload(handler) {
      reload = handler;
    },
    failed: (message) => send({ type: "failed", message }),
    metrics(telemetry) {
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
