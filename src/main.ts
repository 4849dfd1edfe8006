import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdir, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createActivity } from "./accounts/activity.ts";
import { bootstrap } from "./accounts/bootstrap.ts";
import { createCredit } from "./accounts/credit.ts";
import { createKeys } from "./accounts/keys.ts";
import { createOwners } from "./accounts/owners.ts";
import { createSessions } from "./accounts/sessions.ts";
import { applyTiers } from "./accounts/tiers.ts";
import { createUsage } from "./accounts/usage.ts";
import { createWorkspaces } from "./accounts/workspaces.ts";
import { openJournal } from "./admission/journal.ts";
import { createAdmission } from "./admission/lease.ts";
import { keepAlive } from "./admission/replica.ts";
import { createSettlements, type SettlementRow } from "./admission/settle.ts";
import { type Config, ConfigError, envToConfig } from "./config/config.ts";
import { keepRpcUrl, operatorTokenFile, writeDiscovery } from "./discovery.ts";
import { createReader } from "./engine/attachments/reader.ts";
import { loadDifficultyRater } from "./engine/difficulty/difficulty.ts";
import { createValidators } from "./engine/structured/validate.ts";
import { createTokenizer } from "./engine/tokens.ts";
import { createLog, errorFacts, type Log } from "./log.ts";
import { createCatalogue } from "./models/catalogue.ts";
import { createSearch } from "./search/search.ts";
import { createCosts } from "./service/costs.ts";
import { createInFlight } from "./service/in-flight.ts";
import { createServices } from "./service/services.ts";
import { startEmbedded } from "./store/embedded/embedded.ts";
import { migrate } from "./store/migrate.ts";
import { keepPartitions } from "./store/partitions.ts";
import { openPool, type Pool } from "./store/pool.ts";
import { createTelemetry } from "./telemetry.ts";
import { startTracing } from "./tracing.ts";
import { listen, listenBoth } from "./transport/listen.ts";
import { withMetrics } from "./transport/prometheus.ts";
import { createRestServer } from "./transport/rest/server.ts";
import { createRpcHandler } from "./transport/rpc/server.ts";

/** Time that connections get to end by themselves once nothing runs any more, in milliseconds. */
const CLOSE_MS = 1_000;
/** Patience of requests with the database: beyond it they are refused, and what they owe waits in the journal. */
const REQUEST_PATIENCE = { timeoutMs: 3_000, connectMs: 1_000 };
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
    if (config.tracing) {
      const tracing = await startTracing(config.tracing, log);
      stops.push(() => tracing.stop());
    }
    const { pool, desk } = await openStore(config, log, stops, stopping);
    const partitions = await keepPartitions(desk, { retentionDays: config.retentionDays, log });
    stops.push(() => partitions.stop());
    await applyTiers(desk, config.tiers);
    const telemetry = createTelemetry();
    telemetry.watchProcess();
    const replica = randomUUID();
    const journal = await openJournal<SettlementRow>(await journalFolder(config, log), log);
    const settlements = createSettlements(pool, journal, log, telemetry);
    stops.push(() => settlements.close());
    const admission = createAdmission(pool, settlements, config.rates, replica, undefined, telemetry);
    const leases = await keepAlive(pool, replica, admission.holds, log);
    stops.push(() => leases.stop());

    const costs = createCosts();
    const models = createCatalogue(config.models, config.timeouts, (call, generation) => {
      telemetry.modelCall(call);
      costs.add(call, generation);
    });
    stops.push(() => models.close());
    const tokenizer = createTokenizer();
    stops.push(() => tokenizer.close());
    const reader = createReader();
    stops.push(() => reader.close());
    const search = createSearch(config.search);
    stops.push(() => search?.close());
    const difficulty = loadDifficultyRater();
    // The first rating compiles the code, which takes 15 ms.
    difficulty.rate("What is 6 * 7?");
    const work = createInFlight();
    const services = createServices({
      engine: { models, tokenizer, validators: createValidators() },
      difficulty,
      reader,
      search,
      admission,
      keys: createKeys(pool),
      owners: createOwners(desk),
      workspaces: createWorkspaces(desk),
      credit: createCredit(desk),
      usage: createUsage(desk),
      rates: config.rates,
      activity: createActivity(desk),
      sessions: createSessions(desk),
      inFlight: work,
      costs,
      deadlines: config.deadlines,
      levels: config.levels,
    });

    const rest = await listen(
      createRestServer(services, config, log, telemetry),
      config.public.host,
      config.public.port,
    ).catch(cannotListen("HOST and PORT", config.public));
    stops.push(() => rest.destroy());
    const handler = withMetrics(telemetry, createRpcHandler(services, config, log, telemetry));
    const rpc = await listenBoth(handler, config.rpc.host, config.rpc.port).catch(
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
    const secrets = await bootstrap(desk, { apiKey: config.bootstrapApiKey, operatorToken: config.operatorToken });
    const operatorToken = secrets.operatorToken ?? config.operatorToken;
    try {
      if (operatorToken) await writeDiscovery(config.dataDir, { operatorToken });
      const address = await keepRpcUrl(config.dataDir, reachable(rpc.url));
      stops.push(() => address.stop());
    } catch (error) {
      // A replica without a disk of its own does without: only a command line beside it would read this.
      log.warn(
        { cause: errorFacts(error) },
        "could not write to DATA_DIR; the command line will not find this service",
      );
    }
    stopping.throwIfAborted();
    process.stdout.write(greeting(reachable(rest.url), reachable(rpc.url), secrets, models.offline, config));
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Starts the embedded Postgres unless DATABASE_URL names another, and brings the schema up to date. Requests wait for `pool` alone;
 * reports, people and maintenance have connections of their own at the `desk`, so that they can never keep requests waiting.
 */
async function openStore(
  config: Config,
  log: Log,
  stops: Array<() => Promise<void> | void>,
  stopping: AbortSignal,
): Promise<{ pool: Pool; desk: Pool }> {
  let url = config.databaseUrl;
  if (!url) {
    const embedded = await startEmbedded(config.dataDir, (message) => log.info(message));
    stops.push(() => embedded.stop());
    url = embedded.url;
  }
  stopping.throwIfAborted();
  const pool = openPool(url, REQUEST_PATIENCE);
  stops.push(() => pool.end());
  const desk = openPool(url);
  stops.push(() => desk.end());
  await migrate(desk);
  stopping.throwIfAborted();
  return { pool, desk };
}

/** Where settlements wait while the database is away: under DATA_DIR, or, for a replica that may not write there, where the system keeps what may go. */
async function journalFolder(config: Config, log: Log): Promise<string> {
  const folder = join(config.dataDir, "journal");
  try {
    await mkdir(folder, { recursive: true });
    return folder;
  } catch (error) {
    log.warn(
      { cause: errorFacts(error) },
      "could not write to DATA_DIR; settlements wait in a temporary folder while the database is away",
    );
    return mkdtemp(join(tmpdir(), "chorus-journal-"));
  }
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
