import { Resolver } from "node:dns";
import { availableParallelism } from "node:os";
import { resolve } from "node:path";
import { ConfigError, type Env } from "./config-error.ts";
import { dataDirOf } from "./data-dir.ts";
import { readDatabaseUrl } from "./database-url.ts";
import { readWithFiles } from "./file-variables.ts";
import { readLearning } from "./learning.ts";
import { readMail } from "./mail.ts";
import { readOidc } from "./oidc.ts";
import { bodyBudgetBytes, connectionLimits, type Resources, readResources } from "./resources.ts";
import { readRuns } from "./runs.ts";
import { readSettings, type Settings } from "./settings.ts";
import { readTracing } from "./tracing.ts";
import { figures, hostNames, integer, list, milliseconds, oneOf } from "./values.ts";

export { ConfigError } from "./config-error.ts";

export type Config = Settings & ReturnType<typeof readProcess> & ReturnType<typeof readBounds>;

/** Connections of each pool to the database, and the least where workers share them: reports use up to four. */
const DATABASE_CONNECTIONS = 10;
const MIN_DATABASE_CONNECTIONS = 5;

/** Least memory for request bodies of one worker, in bytes: one body of the largest size needs it. */
const LEAST_BODY_BYTES = 64 * 1024 * 1024;

/**
 * Reads and validates the configuration from environment variables and the files that they name.
 * @param resources the limits of the operating system, from which defaults follow
 * @throws ConfigError naming the variable, what was expected and what to do
 */
export function envToConfig(given: Env, resources: Resources = readResources()): Config {
  return readWithFiles(given, (env) => readConfig(env, resources));
}

function readConfig(env: Env, resources: Resources): Config {
  const workers = workersOf(env);
  return { ...readSettings(env, workers), ...readProcess(env), ...readBounds(env, resources, workers) };
}

function workersOf(env: Env): number {
  if (env.CHORUS_WORKERS === "auto") return availableParallelism();
  return integer(env, "CHORUS_WORKERS", 1, 1, 256, "auto or ");
}

/** Reads addresses, secrets, files and what is written. */
function readProcess(env: Env) {
  return {
    public: { host: env.HOST || "127.0.0.1", port: integer(env, "PORT", 8080, 0, 65535) },
    rpc: {
      host: env.RPC_HOST || "127.0.0.1",
      port: integer(env, "RPC_PORT", 8081, 0, 65535),
      /** Further names of the internal listener, in lower case. A leading dot stands for all names below. */
      names: hostNames(env, "RPC_NAMES"),
    },
    /** Connection string of the operator's Postgres; undefined starts the embedded one. */
    databaseUrl: readDatabaseUrl(env, "DATABASE_URL", "unset it to use the embedded Postgres"),
    /** Direct address of the same Postgres, where `databaseUrl` names a pooler. */
    databaseListenUrl: listenUrl(env),
    dataDir: dataDirOf(env),
    /** Whether the service brings the schema of the database up to date. If not, it waits for `chorus migrate`. */
    migrates: migrates(env),
    bootstrapApiKey: env.BOOTSTRAP_API_KEY || undefined,
    operatorToken: env.OPERATOR_TOKEN || undefined,
    /** File that new secrets are written to, in place of the output. */
    secretsFile: env.CHORUS_SECRETS_FILE ? resolve(env.CHORUS_SECRETS_FILE) : undefined,
    console: {
      /** Folder of the built pages. */
      folder: resolve(import.meta.dirname, "../../console/dist"),
      /** Number of proxies in front of the public listener whose `X-Forwarded-*` headers are trusted. */
      proxies: integer(env, "CHORUS_TRUSTED_PROXIES", 0, 0, 10),
    },
    /** What a credit is sold for, in USD; undefined: it is not known. */
    usdPerCredit: usdPerCredit(env),
    /** Undefined: people do not sign in; owners and operators have tokens. */
    oidc: readOidc(env),
    /** In milliseconds; see `AlertTimes`. */
    alerts: milliseconds(env, "CHORUS_ALERTS_MS", { compareMs: 15_000, retryMs: 5_000 }),
    /** Names of webhooks that may be private, or use HTTP, in lower case. A leading dot stands for all names below. */
    webhookHosts: hostNames(env, "CHORUS_WEBHOOK_HOSTS"),
    /** Name servers for the names of webhooks, as addresses with or without a port. Empty: those of the machine. */
    webhookDnsServers: nameServers(env, "CHORUS_WEBHOOK_DNS_SERVERS"),
    /** Undefined: alerts cannot be sent by e-mail. */
    mail: readMail(env),
    logLevel: oneOf(env, "LOG_LEVEL", ["info", "trace", "debug", "warn", "error", "silent"]),
    /** Undefined: no OpenTelemetry traces are recorded. */
    tracing: readTracing(env),
  };
}

/** Reads times and bounds. Those of memory and connections are of one worker. */
function readBounds(env: Env, resources: Resources, workers: number) {
  const bodyBytes = [bodyBudgetBytes(resources), LEAST_BODY_BYTES, Number.MAX_SAFE_INTEGER] as const;
  return {
    /** Processes that serve requests on the same ports. */
    workers,
    timeouts: milliseconds(env, "CHORUS_MODEL_TIMEOUTS_MS", {
      connectMs: 5_000,
      firstTokenMs: 60_000,
      betweenChunksMs: 30_000,
    }),
    /** Lowest difficulty, 0 to 1, for which effort `auto` chooses a level. */
    levels: levels(env),
    /** Whether the order of the models is learned from graded answers. */
    learning: readLearning(env),
    /** Deadline of an answer by level, in milliseconds. */
    deadlines: milliseconds(env, "CHORUS_DEADLINES_MS", { low: 30_000, medium: 60_000, high: 180_000 }),
    /** Time for requests in flight to finish after SIGTERM, in milliseconds. */
    drainMs: integer(env, "CHORUS_DRAIN_MS", 20_000, 0, 3_600_000),
    /** Most connections of each of the two pools to the database. */
    databaseConnections: Math.max(MIN_DATABASE_CONNECTIONS, Math.ceil(DATABASE_CONNECTIONS / workers)),
    /** Age at which records of requests and usage by minute are deleted, in days. */
    retentionDays: integer(env, "CHORUS_RETENTION_DAYS", 400, 7, 36_500),
    /** Whether requests leave runs. */
    runs: readRuns(env),
    /** Most bytes of request bodies held in memory at one time, over all requests. */
    bodyBudgetBytes: Math.max(
      LEAST_BODY_BYTES,
      Math.floor(integer(env, "CHORUS_BODY_BUDGET_BYTES", ...bodyBytes) / workers),
    ),
    /** Most connections that may be open at a time. The limit on open files is one of each process. */
    connections: connectionLimits({ ...resources, memoryBytes: resources.memoryBytes / workers }),
    /** Whether the vendors are asked at the start and on reload whether they take the keys. */
    probesVendors: oneOf(env, "CHORUS_PROBES", ["on", "off"]) === "on",
    /** Whether the threads for large bodies start with the service. */
    warmsUp: oneOf(env, "CHORUS_WARM_UP", ["on", "off"]) === "on",
    /** Mean delay of the event loop above which requests are refused, in milliseconds; 0: never. */
    maxLoopDelayMs: integer(env, "CHORUS_MAX_LOOP_DELAY_MS", 50, 0, 10_000),
    /** Longest time without a byte of a request body, and for the whole body, in milliseconds. */
    body: milliseconds(env, "CHORUS_BODY_MS", { idleMs: 10_000, totalMs: 300_000 }),
    /**
     * In milliseconds: the longest wait for a first event before the headers are sent without one; the interval of
     * keep-alive comments while there are no events; the longest time that a caller may leave sent data unread.
     */
    stream: milliseconds(env, "CHORUS_STREAM_MS", { headersMs: 2_000, keepAliveMs: 15_000, stallMs: 30_000 }),
  };
}

function usdPerCredit(env: Env): number | undefined {
  const text = env.CHORUS_USD_PER_CREDIT;
  if (!text) return undefined;
  const usd = Number(text);
  if (usd > 0 && usd <= 1_000_000) return usd;
  const expected = "CHORUS_USD_PER_CREDIT must be what a credit is sold for in US dollars, above 0 and at most 1000000";
  throw new ConfigError(`${expected}, but is "${text}". Correct it or unset it.`);
}

/** Reads addresses of name servers, separated by commas. */
function nameServers(env: Env, name: string): string[] {
  const servers = list(env, name);
  try {
    new Resolver().setServers(servers);
  } catch {
    throw new ConfigError(
      `${name} must be IP addresses of name servers separated by commas, such as "10.0.0.2,[fd00::2]:5353", but is ` +
        `"${env[name]}". Leave out names and schemes, or unset it to use the name servers of the machine.`,
    );
  }
  return servers;
}

/**
 * The lowest difficulties at which `auto` selects a level: between those of the prompts of each level in
 * test/engine/difficulty/prompts.jsonl.
 */
const LEVELS = { medium: 0.22, high: 0.6 };

function levels(env: Env): typeof LEVELS {
  const given = figures(env, "CHORUS_LEVELS", LEVELS, 0, 1);
  if (given.medium > given.high) {
    throw new ConfigError('CHORUS_LEVELS: "medium" must not be above "high". Lower "medium" or raise "high".');
  }
  return given;
}

function migrates(env: Env): boolean {
  const word = oneOf(env, "CHORUS_MIGRATE", ["auto", "never"]);
  if (word === "never" && !env.DATABASE_URL) {
    throw new ConfigError("CHORUS_MIGRATE=never needs DATABASE_URL. Set that, or unset CHORUS_MIGRATE.");
  }
  return word === "auto";
}

function listenUrl(env: Env): string | undefined {
  const url = readDatabaseUrl(env, "DATABASE_LISTEN_URL", "unset it to use DATABASE_URL");
  if (url !== undefined && !env.DATABASE_URL) {
    throw new ConfigError("DATABASE_LISTEN_URL needs DATABASE_URL. Set that, or unset DATABASE_LISTEN_URL.");
  }
  return url;
}
