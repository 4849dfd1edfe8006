import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { bootstrap } from "./admission/bootstrap.ts";
import { createCredit } from "./admission/credit.ts";
import { openJournal } from "./admission/journal.ts";
import { createKeys } from "./admission/keys.ts";
import { createAdmission } from "./admission/lease.ts";
import { createOwners } from "./admission/owners.ts";
import { keepAlive } from "./admission/replica.ts";
import { createSettlements, type SettlementRow } from "./admission/settle.ts";
import { applyTiers } from "./admission/tiers.ts";
import { createUsage } from "./admission/usage.ts";
import { createWorkspaces } from "./admission/workspaces.ts";
import { type Config, ConfigError, envToConfig } from "./config.ts";
import { createValidators } from "./engine/structured/validate.ts";
import { createTokenizer } from "./engine/tokens.ts";
import { localFile, writeLocal } from "./local.ts";
import { createLog, errorFacts, type Log } from "./log.ts";
import { createCatalogue } from "./models/catalogue.ts";
import { createServices } from "./service/services.ts";
import { createWork } from "./service/work.ts";
import { startEmbedded } from "./store/embedded.ts";
import { migrate } from "./store/migrate.ts";
import { keepPartitions } from "./store/partitions.ts";
import { openPool } from "./store/pool.ts";
import { createTelemetry } from "./telemetry.ts";
import { listen, listenBoth } from "./transport/listen.ts";
import { withMetrics } from "./transport/prometheus.ts";
import { createRestServer } from "./transport/rest.ts";
import { createRpcHandler } from "./transport/rpc.ts";

/** Time that connections get to end by themselves once nothing runs any more, in milliseconds. */
const CLOSE_MS = 1_000;
/** Patience of requests with the database: beyond it they are refused, and what they owe waits in the journal. */
const REQUEST_PATIENCE = { timeoutMs: 3_000, connectMs: 1_000 };
/** A terminal's Ctrl-C arrives twice, from the terminal and from npm; a later signal means impatience. */
const IMPATIENCE_MS = 1_000;

/** Starts everything, in order, and returns what stops it, in reverse order. */
async function start(config: Config, log: Log): Promise<() => Promise<void>> {
  const stops: Array<() => Promise<void> | void> = [];
  const stop = async () => {
    for (const end of stops.splice(0).reverse()) await end();
  };
  try {
    let url = config.databaseUrl;
    if (!url) {
      const embedded = await startEmbedded(config.dataDir, (message) => log.info(message));
      stops.push(() => embedded.stop());
      url = embedded.url;
    }
    // What requests wait for; reports, people and maintenance have connections of their own, so that they can never keep requests waiting.
    const pool = openPool(url, REQUEST_PATIENCE);
    stops.push(() => pool.end());
    const desk = openPool(url);
    stops.push(() => desk.end());
    await migrate(desk);
    const partitions = await keepPartitions(desk, { retentionDays: config.retentionDays, log });
    stops.push(() => partitions.stop());
    await applyTiers(desk, config.tiers);
    const telemetry = createTelemetry();
    telemetry.watchProcess();
    const replica = randomUUID();
    const secrets = await bootstrap(desk, { apiKey: config.bootstrapApiKey, operatorToken: config.operatorToken });

    const journal = await openJournal<SettlementRow>(join(config.dataDir, "journal"), log);
    const settlements = createSettlements(pool, journal, log, telemetry);
    stops.push(() => settlements.close());
    const admission = createAdmission(pool, settlements, config.rates, replica, undefined, telemetry);
    const leases = await keepAlive(pool, replica, admission.holds, log);
    stops.push(() => leases.stop());

    const models = createCatalogue(config.models, config.timeouts, telemetry.modelCall);
    stops.push(() => models.close());
    const tokenizer = createTokenizer();
    stops.push(() => tokenizer.close());
    const work = createWork();
    const services = createServices({
      engine: { models, tokenizer, validators: createValidators() },
      admission,
      keys: createKeys(pool),
      owners: createOwners(desk),
      workspaces: createWorkspaces(desk),
      credit: createCredit(desk),
      usage: createUsage(desk),
      work,
      deadlines: config.deadlines,
    });

    const rest = await listen(
      createRestServer(services, config, log, telemetry),
      config.public.host,
      config.public.port,
    );
    stops.push(() => rest.destroy());
    const handler = withMetrics(telemetry, createRpcHandler(services, config, log, telemetry));
    const rpc = await listenBoth(handler, config.rpc.host, config.rpc.port);
    stops.push(async () => {
      const closed = Promise.all([rest.close(), rpc.close()]);
      await work.drain(config.drainMs);
      const timer = setTimeout(() => {
        rest.destroy();
        rpc.destroy();
      }, CLOSE_MS);
      await closed;
      clearTimeout(timer);
    });

    const operatorToken = secrets.operatorToken ?? config.operatorToken;
    await writeLocal(config.dataDir, { rpcUrl: rpc.url, ...(operatorToken ? { operatorToken } : {}) });
    process.stdout.write(greeting(rest.url, rpc.url, secrets, models.offline, config));
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}

function greeting(
  restUrl: string,
  rpcUrl: string,
  secrets: { apiKey?: string; operatorToken?: string },
  offline: boolean,
  config: Config,
): string {
  const url = restUrl.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]");
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
      `  Operator token          ${secrets.operatorToken}   (shown this once; kept in ${localFile(config.dataDir)})`,
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

function stopOnSignals(stop: () => Promise<void>, log: Log): void {
  let since: number | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (since !== undefined) {
      if (performance.now() - since > IMPATIENCE_MS) process.exit(1);
      return;
    }
    since = performance.now();
    log.info({ signal }, "stopping");
    stop().then(
      () => process.exit(0),
      (error) => {
        log.error({ cause: errorFacts(error) }, "could not stop cleanly");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", onSignal).on("SIGINT", onSignal);
}

async function main(): Promise<void> {
  const config = envToConfig(process.env);
  const log = createLog(config.logLevel);
  stopOnSignals(await start(config, log), log);
}

main().catch((error: unknown) => {
  // A configuration error says what to do; anything else is shown whole, since it concerns the operator only.
  process.stderr.write(
    `Chorus cannot start. ${error instanceof ConfigError ? error.message : error instanceof Error ? error.message : error}\n`,
  );
  process.exit(1);
});
