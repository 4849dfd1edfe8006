import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { startEmbedded } from "../store/embedded/embedded.ts";
import { announce } from "./announce.ts";
import { run, type Start } from "./run.ts";
import { EMBEDDED_VARIABLE } from "./workers/messages.ts";
import { claimPort } from "./workers/ports.ts";
import { createWorkers } from "./workers/primary.ts";

// The package of the service has JavaScript.
const REPLICA = fileURLToPath(new URL(`./main${extname(import.meta.url)}`, import.meta.url));

/**
 * Starts the embedded Postgres if it is used, and the workers. Workers take compiled code from a cache in DATA_DIR.
 * Disposing the result stops everything in reverse order.
 */
const start: Start = async (config, processLog, stopping) => {
  const { databaseUrl, dataDir, workers: count } = config;
  const port = await claimPort("HOST and PORT", config.public);
  const rpcPort = await claimPort("RPC_HOST and RPC_PORT", config.rpc);
  await using stack = new AsyncDisposableStack();
  const database = { url: databaseUrl };
  if (!databaseUrl) {
    const embedded = await startEmbedded(dataDir, (message, level) => processLog.log[level](message));
    stack.defer(() => embedded.stop());
    database.url = embedded.url;
  }
  const env = {
    PORT: port,
    RPC_PORT: rpcPort,
    DATABASE_URL: database.url,
    DATABASE_URL_FILE: undefined,
    [EMBEDDED_VARIABLE]: databaseUrl ? undefined : 1,
    // npm is not the parent of the workers.
    npm_lifecycle_event: undefined,
  };
  const workers = createWorkers({ exec: REPLICA, count, env }, processLog);
  stack.defer(() => workers.stop());
  process.on("SIGHUP", () => workers.reload());
  const aborted = new Promise<never>((_, reject) =>
    stopping.addEventListener("abort", () => reject(stopping.reason), { once: true }),
  );
  stopping.throwIfAborted();
  const [first, ...others] = await Promise.race([workers.start(), aborted]);
  if (!first) throw new Error("No worker has started.");
  // Of several workers at a first start, one creates the secrets.
  const secrets = Object.assign({}, first.secrets, ...others.map((other) => other.secrets));
  const signInPath = [first, ...others].find((worker) => worker.signInPath)?.signInPath;
  const lacksOperator = first.lacksOperator && !secrets.operatorToken;
  await announce(process, config, processLog.log, stack, { ...first, secrets, signInPath, lacksOperator });
  return stack.move();
};

/** Runs the workers until a stop signal. @returns the exit code */
export function runWorkers(): Promise<number> {
  return run(process, start);
}
