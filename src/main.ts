import { once } from "node:events";
import { bootstrap } from "./admission/bootstrap.ts";
import { createKeys } from "./admission/keys.ts";
import { createAdmission } from "./admission/lease.ts";
import { createUsage } from "./admission/usage.ts";
import { type Config, ConfigError, envToConfig } from "./config.ts";
import { createValidators } from "./engine/structured/validate.ts";
import { createTokenizer } from "./engine/tokens.ts";
import { operatorTokenFile, writeLocal } from "./local.ts";
import { createLog, errorFacts, type Log } from "./log.ts";
import { createCatalogue } from "./models/catalogue.ts";
import { createServices } from "./service/services.ts";
import { createWork } from "./service/work.ts";
import { startEmbedded } from "./store/embedded.ts";
import { migrate } from "./store/migrate.ts";
import { openPool, type Pool } from "./store/pool.ts";
import { listen, listenBoth } from "./transport/listen.ts";
import { createRestServer } from "./transport/rest.ts";
import { createRpcHandler } from "./transport/rpc.ts";

/** Time that connections get to end by themselves once nothing runs any more, in milliseconds. */
const CLOSE_MS = 1_000;
/** A terminal's Ctrl-C arrives twice, from the terminal and from npm; a later signal means impatience. */
const IMPATIENCE_MS = 1_000;

/** How often a service that npm started looks whether npm is still there, in milliseconds. */
const PARENT_MS = 500;

type Stop = () => Promise<void>;

/** Starts everything, in order, and returns what stops it, in reverse order. Once `stopping` has aborted it stops what it started, and throws. */
async function start(config: Config, log: Log, stopping: AbortSignal): Promise<Stop> {
  const stops: Array<() => Promise<void> | void> = [];
  const stop = async () => {
    const errors: unknown[] = [];
    for (const end of stops.splice(0).reverse()) await Promise.try(end).catch((error) => errors.push(error));
    if (errors.length > 0) throw errors[0];
  };
  try {
    const pool = await openStore(config, log, stops, stopping);
    const models = createCatalogue(config.models, config.timeouts);
    stops.push(() => models.close());
    const tokenizer = createTokenizer();
    stops.push(() => tokenizer.close());
    const work = createWork();
    const services = createServices({
      engine: { models, tokenizer, validators: createValidators() },
      admission: createAdmission(pool, config.rates),
      keys: createKeys(pool),
      usage: createUsage(pool),
      work,
      deadlines: config.deadlines,
    });

    const rest = await listen(createRestServer(services, config, log), config.public.host, config.public.port).catch(
      cannotListen("HOST and PORT", config.public),
    );
    stops.push(() => rest.destroy());
    const rpc = await listenBoth(createRpcHandler(services, config, log), config.rpc.host, config.rpc.port).catch(
      cannotListen("RPC_HOST and RPC_PORT", config.rpc),
    );
    stops.push(async () => {
      rest.drain();
      rpc.drain();
      await work.drain(config.drainMs);
      const timer = setTimeout(() => {
        rest.destroy();
        rpc.destroy();
      }, CLOSE_MS);
      await Promise.all([rest.close(), rpc.close()]);
      clearTimeout(timer);
      // A request whose connection was ended just now still has its books to close.
      await work.drain(0);
    });

    // Not before: a start that fails must not use up the one time that the secrets are shown.
    const secrets = await bootstrap(pool, { apiKey: config.bootstrapApiKey, operatorToken: config.operatorToken });
    const operatorToken = secrets.operatorToken ?? config.operatorToken;
    await writeLocal(config.dataDir, {
      rpcUrl: reachable(rpc.url),
      ...(operatorToken ? { operatorToken } : {}),
    }).catch((error) => {
      // A replica without a disk of its own does without: only a command line beside it would read this.
      log.warn(
        { cause: errorFacts(error) },
        "could not write to DATA_DIR; the command line will not find this service",
      );
    });
    stopping.throwIfAborted();
    process.stdout.write(greeting(reachable(rest.url), reachable(rpc.url), secrets, models.offline, config));
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Starts the embedded Postgres unless DATABASE_URL names another, and brings the schema up to date. */
async function openStore(
  config: Config,
  log: Log,
  stops: Array<() => Promise<void> | void>,
  stopping: AbortSignal,
): Promise<Pool> {
  let url = config.databaseUrl;
  if (!url) {
    const embedded = await startEmbedded(config.dataDir, (message) => log.info(message));
    stops.push(() => embedded.stop());
    url = embedded.url;
  }
  stopping.throwIfAborted();
  const pool = openPool(url);
  stops.push(() => pool.end());
  await migrate(pool);
  stopping.throwIfAborted();
  return pool;
}

function cannotListen(names: string, { host, port }: { host: string; port: number }) {
  const reasons: Record<string, string> = {
    EADDRINUSE: "something else listens there",
    EACCES: "this user may not use that port",
    EADDRNOTAVAIL: "this machine has no such address",
    ENOTFOUND: "there is no host of that name",
  };
  return (error: NodeJS.ErrnoException): never => {
    const reason = reasons[error.code ?? ""] ?? error.message;
    throw new ConfigError(`${host}:${port} cannot be listened at: ${reason}. Set ${names} to another address.`, {
      cause: error,
    });
  };
}

/** An address that works from this machine, where a listener takes connections for every address that it has. */
function reachable(url: string): string {
  return url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:");
}

function greeting(
  url: string,
  rpcUrl: string,
  secrets: { apiKey?: string; operatorToken?: string },
  offline: boolean,
  config: Config,
): string {
  const lines = ["Chorus is ready.", "", `  REST and SSE            ${url}`, `  Connect, gRPC, gRPC-Web ${rpcUrl}`];
  if (offline) {
    lines.push(
      "",
      "  No vendor is configured, so the built-in offline models answer. They extract and calculate; they do not write.",
    );
    lines.push(
      "  Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or write a catalogue file, for real models.",
    );
  }
  if (secrets.apiKey) lines.push("", `  API key                 ${secrets.apiKey}   (shown this once)`);
  if (secrets.operatorToken) {
    lines.push(
      `  Operator token          ${secrets.operatorToken}   (shown this once; kept in ${operatorTokenFile(config.dataDir)})`,
    );
  }
  const key = secrets.apiKey ?? "$CHORUS_API_KEY";
  lines.push("", "Try it:", "");
  lines.push(
    `  curl ${url}/v1/generate -H "X-API-Key: ${key}" -H "Content-Type: application/json" -d '{"prompt": "What is 17 * 23 + 4?"}'`,
    "",
  );
  if (!secrets.apiKey) lines.push("  (A new key: npm run chorus -- keys create --workspace default)", "");
  return `${lines.join("\n")}\n`;
}

/** Aborts at the first SIGTERM or SIGINT. A later one ends the process at once. */
function stopSignal(log: Log): AbortSignal {
  const stopping = new AbortController();
  let since = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    if (stopping.signal.aborted) {
      if (performance.now() - since > IMPATIENCE_MS) process.exit(1);
      return;
    }
    since = performance.now();
    log.info({ signal }, "stopping");
    stopping.abort();
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
  // npm sends SIGTERM to its shell alone, which dies of it and passes nothing on. What is left is another parent.
  const parent = process.env.npm_lifecycle_event ? process.ppid : undefined;
  const look = () => {
    if (process.ppid !== parent && !stopping.signal.aborted) onSignal("SIGTERM");
  };
  if (parent !== undefined) setInterval(look, PARENT_MS).unref();
  return stopping.signal;
}

/** Runs until a signal comes, and gives the exit code. */
async function main(): Promise<number> {
  let stopping: AbortSignal | undefined;
  let stop: Stop;
  try {
    const config = envToConfig(process.env);
    const log = createLog(config.logLevel);
    stopping = stopSignal(log);
    stop = await start(config, log, stopping);
  } catch (error) {
    if (stopping?.aborted) return 0;
    // Shown as it is, since it concerns the operator alone.
    process.stderr.write(`Chorus cannot start. ${error instanceof Error ? error.message : error}\n`);
    return 1;
  }
  if (!stopping.aborted) await once(stopping, "abort");
  try {
    await stop();
    return 0;
  } catch (error) {
    process.stderr.write(`Chorus did not stop cleanly. ${error instanceof Error ? error.message : error}\n`);
    return 1;
  }
}

process.exit(await main());
