import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createActivity } from "./accounts/activity.ts";
import { bootstrap, checkSecrets, createSecrets } from "./accounts/bootstrap.ts";
import { createCredit } from "./accounts/credit.ts";
import { createKeys } from "./accounts/keys.ts";
import { createOwners } from "./accounts/owners.ts";
import { createSessions } from "./accounts/sessions.ts";
import { applyTiers } from "./accounts/tiers.ts";
import { createUsage } from "./accounts/usage.ts";
import { createWorkspaces } from "./accounts/workspaces.ts";
import { openJournal } from "./admission/journal.ts";
import { journalFolder } from "./admission/journal-folder.ts";
import { type Admission, createAdmission } from "./admission/lease.ts";
import { keepAlive } from "./admission/replica.ts";
import { createSettlements, isSettlementRow } from "./admission/settle.ts";
import { type Config, envToConfig } from "./config/config.ts";
import { listenError } from "./config/listen-error.ts";
import { keepRpcUrl, reachableUrl, writeDiscovery } from "./discovery.ts";
import { createReader } from "./engine/attachments/reader.ts";
import { loadDifficultyRater } from "./engine/difficulty/difficulty.ts";
import { createValidators } from "./engine/structured/validate.ts";
import { createTokenizer } from "./engine/tokens.ts";
import { greeting } from "./greeting.ts";
import type { InternalErrors } from "./internal-errors.ts";
import { errorFacts, type Log, openLog, type ProcessLog } from "./log.ts";
import { createCatalogue } from "./models/catalogue.ts";
import { readResources, resourceWarnings } from "./resources.ts";
import { createSearch } from "./search/search.ts";
import { createInFlight, type InFlight } from "./service/in-flight.ts";
import { createServices, type Services } from "./service/services.ts";
import { createShares } from "./service/shares.ts";
import { startShedder } from "./service/shedding.ts";
import { drainServers, handleErrors, stopSignal } from "./shutdown.ts";
import { createStore, type Store } from "./store/open.ts";
import { keepPartitions } from "./store/partitions.ts";
import { createTelemetry } from "./telemetry/create.ts";
import type { Telemetry } from "./telemetry/telemetry.ts";
import { lowerEngineThreads } from "./thread-priority.ts";
import { startTracing } from "./tracing.ts";
import type { ConnectionOptions } from "./transport/connections.ts";
import { listen, listenBoth } from "./transport/listen.ts";
import { withMetrics } from "./transport/prometheus.ts";
import { createRequestReader } from "./transport/request-reader.ts";
import { createRestServer } from "./transport/rest/server.ts";
import { requireKnownHost } from "./transport/rpc/known-host.ts";
import { createRpcHandler } from "./transport/rpc/server.ts";

/** What each step of the start needs. */
interface Context {
  readonly config: Config;
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly errors: InternalErrors;
  /** Takes what has to be stopped. */
  readonly stack: AsyncDisposableStack;
}

/**
 * Starts everything in order. Disposing the result stops everything in reverse order. The listeners start before the
 * database is available, so that probes are answered; other requests are refused until the end of the start.
 * @param stopping aborts the start: what was started is stopped again, and the reason of the signal is thrown
 */
async function start(config: Config, processLog: ProcessLog, stopping: AbortSignal): Promise<AsyncDisposableStack> {
  const { log, errors, output } = processLog;
  const { bootstrapApiKey: apiKey, operatorToken, dataDir } = config;
  const given = { apiKey, operatorToken };
  checkSecrets(given);
  await using stack = new AsyncDisposableStack();
  if (config.tracing) stack.adopt(await startTracing(config.tracing, log, errors), (tracing) => tracing.stop());
  const store = stack.use(createStore(config, log, stopping));
  const telemetry = createTelemetry(errors);
  telemetry.watchProcess();
  telemetry.watchLog(() => output.dropped);

  const context: Context = { config, log, telemetry, errors, stack };
  const replica = randomUUID();
  const admission = await startAdmission(context, store, replica);
  const inFlight = createInFlight();
  const { services, offline } = createServiceParts(context, store, admission, inFlight);
  const { restUrl, rpcUrl } = await startServers(context, services, inFlight);

  const secrets = await store.open(async (pools, repeat) => {
    await repeat(() => applyTiers(pools.maintenance, config.tiers));
    const partitions = await keepPartitions(pools.maintenance, { retentionDays: config.retentionDays, log });
    stack.defer(() => partitions.stop());
    const leases = await repeat(() => keepAlive(pools.requests, replica, admission.holds, log));
    stack.defer(() => leases.stop());
    // New secrets are shown only once. They are created last, so that no later step can fail before they are printed.
    const offered = createSecrets();
    return repeat(() => bootstrap(pools.maintenance, given, offered));
  });
  await announce(context, rpcUrl, secrets.operatorToken ?? operatorToken);
  if (Object.keys(secrets).length === 0) stopping.throwIfAborted();
  process.stdout.write(greeting({ restUrl, rpcUrl, dataDir, secrets, offline }));
  return stack.move();
}

async function startAdmission(
  { config, log, telemetry, stack }: Context,
  store: Store,
  replica: string,
): Promise<Admission> {
  const journal = await openJournal(await journalFolder(config.dataDir, log), log, isSettlementRow);
  const settlements = createSettlements(store.requests, journal, log, telemetry);
  stack.defer(() => settlements.close());
  return createAdmission(store.requests, settlements, config.rates, replica, undefined, telemetry);
}

/** @returns the services, and whether only the offline models are available */
function createServiceParts(
  { config, telemetry, errors, stack }: Context,
  store: Store,
  admission: Admission,
  inFlight: InFlight,
): { services: Services; offline: boolean } {
  const { requests, maintenance, notifications } = store;
  const models = createCatalogue(config.models, config.timeouts, {
    connections: config.connections.vendors,
    onCall: telemetry.modelCall,
    onRefusal: telemetry.modelCallRefused,
    errors,
  });
  telemetry.watchModels(models.load);
  stack.defer(() => models.close());
  const tokenizer = createTokenizer();
  const reader = createReader();
  stack.defer(() => reader.close());
  const search = createSearch(config.search);
  stack.defer(() => search?.close());
  const difficulty = loadDifficultyRater();
  // Warms up the rater: the first rating of a process takes 15 ms, later ones a fraction of that.
  difficulty.rate("What is 6 * 7?");
  const shedder = startShedder(config.maxLoopDelayMs, telemetry);
  stack.defer(() => shedder.stop());
  const services = createServices({
    engine: { models, tokenizer, validators: createValidators() },
    difficulty,
    reader,
    search,
    admission,
    keys: createKeys(requests, Date.now, notifications),
    owners: createOwners(maintenance, Date.now, notifications),
    workspaces: createWorkspaces(maintenance),
    credit: createCredit(maintenance),
    usage: createUsage(maintenance),
    rates: config.rates,
    activity: createActivity(maintenance),
    sessions: createSessions(maintenance),
    shedder,
    shares: createShares(telemetry),
    inFlight,
    deadlines: config.deadlines,
    levels: config.levels,
    started: () => store.isOpen,
  });
  return { services, offline: models.offline };
}

/** Starts the public and the internal listener. @returns addresses that work from this machine */
async function startServers(
  { config, log, telemetry, stack }: Context,
  services: Services,
  inFlight: InFlight,
): Promise<{ restUrl: string; rpcUrl: string }> {
  const { host, port } = config.public;
  const reader = createRequestReader();
  stack.defer(() => reader.close());
  const restServer = createRestServer(services, config, log, telemetry, reader);
  const rest = await listen(restServer, host, port).catch((error) => {
    throw listenError("HOST and PORT", config.public, error);
  });
  stack.defer(() => rest.destroy());
  const rpcHandler = withMetrics(telemetry, createRpcHandler(services, config, log, telemetry, reader));
  const handler = requireKnownHost(config, rpcHandler);
  const connections: ConnectionOptions = { max: config.connections.internal, onShed: telemetry.requestShed };
  const rpc = await listenBoth(handler, config.rpc.host, config.rpc.port, connections).catch((error) => {
    throw listenError("RPC_HOST and RPC_PORT", config.rpc, error);
  });
  stack.defer(() => drainServers([rest, rpc], inFlight, config.drainMs));
  return { restUrl: reachableUrl(rest.url), rpcUrl: reachableUrl(rpc.url) };
}

/** Writes the address and the operator token where the command line on this machine finds them. */
async function announce({ config, log, stack }: Context, rpcUrl: string, operatorToken?: string): Promise<void> {
  try {
    if (operatorToken) await writeDiscovery(config.dataDir, { operatorToken });
    const address = await keepRpcUrl(config.dataDir, rpcUrl);
    stack.defer(() => address.stop());
  } catch (error) {
    // A replica without a writable disk serves requests all the same.
    log.warn({ cause: errorFacts(error) }, "could not write to DATA_DIR; the command line will not find this service");
  }
}

/** Runs the service until a stop signal and returns the exit code. */
async function main(): Promise<number> {
  let stopping: AbortSignal | undefined;
  let running: AsyncDisposableStack;
  try {
    const resources = readResources();
    const config = envToConfig(process.env, resources);
    const processLog = openLog(config.logLevel, process.stderr);
    for (const warning of resourceWarnings(resources)) processLog.log.warn(warning);
    handleErrors(process, processLog);
    lowerEngineThreads();
    stopping = stopSignal(process, processLog.log);
    running = await start(config, processLog, stopping);
  } catch (error) {
    if (stopping?.aborted) return 0;
    // Errors of the start are for the operator, so the full message is printed.
    process.stderr.write(`Chorus cannot start. ${messageOf(error)}\n`);
    return 1;
  }
  if (!stopping.aborted) await once(stopping, "abort");
  try {
    await running.disposeAsync();
    return 0;
  } catch (error) {
    process.stderr.write(`Chorus did not stop cleanly. ${messageOf(error)}\n`);
    return 1;
  }
}

/** The message of an error; of several errors, which disposal nests, that of the first. */
function messageOf(error: unknown): string {
  if (error instanceof SuppressedError) return messageOf(error.suppressed);
  return error instanceof Error ? error.message : String(error);
}

process.exit(await main());
