import { randomBytes } from "node:crypto";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { errorFacts, type Log } from "../telemetry/log.ts";
import { withTimeout } from "./loop-time.ts";
import type { Pool } from "./pool.ts";
import { tlsOf } from "./tls.ts";

/** Time between two beats, in milliseconds. */
const BEAT_MS = 300;

/** Age of the last beat that arrived from which messages may be lost or late, in milliseconds from when it was sent. */
const PROVEN_MS = 900;

/** Time without a beat after which the connection is replaced, in milliseconds. */
const SILENT_MS = 5_000;

/** First and longest pause before a new connection, in milliseconds. Each is 50 % to 100 % of its value, at random. */
const PAUSE_MS = { first: 250, longest: 15_000 };

/** Timeout of a new connection and of LISTEN, in milliseconds. */
const CONNECT_MS = 3_000;

/**
 * Messages between all processes that use one database, over LISTEN and NOTIFY. A message arrives when the transaction
 * that sends it is committed. While the connection is lost, messages are lost too; `period` says whether they are.
 */
export interface Notifications {
  /**
   * Number of the current period without a lost message; undefined while messages may be lost or late. If it has the
   * same value as earlier, each message that was sent in between, until 900 ms ago, has been delivered. So what was
   * read from the database at the earlier time has not changed until 900 ms ago, unless a message says so.
   */
  readonly period: number | undefined;
  /**
   * Receives the messages of a channel, also those that this process sends. Must be called before `start`.
   * @param channel lower-case letters and underscores
   */
  listen(channel: string, onMessage: (payload: string) => void): void;
  /**
   * Sends a message. SQL functions and triggers send with `pg_notify`.
   * @param payload at most 7,999 bytes
   * @throws an error of the pool
   */
  notify(channel: string, payload: string): Promise<void>;
}

export interface NotificationsConnection extends Notifications {
  /**
   * Connects in the background, and again whenever the connection is lost or delivers nothing.
   * @param url direct address of the server; a pooler in transaction mode delivers no messages
   * @param pool sends messages
   */
  start(url: string, pool: Pool): void;
  /** Closes the connection. Resolves when no statement of it runs any more. */
  stop(): Promise<void>;
}

/**
 * Creates notifications without a connection. Once connected, they send a beat through the pool every 300 ms. Postgres
 * delivers messages in the order of their commits, so a beat that arrives proves that all messages that were committed
 * before it was sent have arrived, and that the pool and the connection use the same server.
 */
export function createNotifications(log: Log): NotificationsConnection {
  const stopping = new AbortController();
  const handlers = new Map<string, ((payload: string) => void)[]>();
  const beats = `chorus_beat_${randomBytes(8).toString("hex")}`;
  let sender: Pool | undefined;
  let running: Promise<void> | undefined;
  let period = 0;
  /** `performance.now()` when the last beat that arrived was sent. */
  let provenAt = Number.NEGATIVE_INFINITY;
  let warned = false;
  const isProven = () => performance.now() - provenAt < PROVEN_MS;

  function receive({ channel, payload = "" }: pg.Notification): void {
    if (channel !== beats) {
      for (const handle of handlers.get(channel) ?? []) handle(payload);
      return;
    }
    if (!isProven()) period += 1;
    provenAt = Number(payload);
    if (warned) log.info("listening to changes in the database works again");
    warned = false;
  }

  async function run(url: string, pool: Pool): Promise<void> {
    let pause = PAUSE_MS.first;
    while (!stopping.signal.aborted) {
      const before = period;
      const channels = [beats, ...handlers.keys()];
      const beat = (signal: AbortSignal) => sendBeats(pool, beats, () => provenAt, signal);
      await withListener({ url, channels, receive }, stopping.signal, beat).catch((error: unknown) => {
        if (!warned && !stopping.signal.aborted) log.warn({ cause: errorFacts(error) }, NOT_LISTENING);
        warned = true;
      });
      provenAt = Number.NEGATIVE_INFINITY;
      pause = period > before ? PAUSE_MS.first : Math.min(pause * 2, PAUSE_MS.longest);
      const { signal } = stopping;
      await sleep(pause * (0.5 + Math.random() / 2), undefined, { signal }).catch(() => undefined);
    }
  }

  return {
    get period() {
      return isProven() ? period : undefined;
    },
    listen(channel, onMessage) {
      handlers.set(channel, [...(handlers.get(channel) ?? []), onMessage]);
    },
    async notify(channel, payload) {
      await sender?.query("select pg_notify($1, $2)", [channel, payload]);
    },
    start(url, pool) {
      sender = pool;
      running = run(url, pool);
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

const NOT_LISTENING =
  "cannot listen to changes in the database, so keys in use are looked up instead; if DATABASE_URL names a pooler, " +
  "set DATABASE_LISTEN_URL to the address of the server";

/** Sends beats until none has arrived for a time, or the signal aborts. */
async function sendBeats(pool: Pool, channel: string, provenAt: () => number, signal: AbortSignal): Promise<void> {
  const since = performance.now();
  while (!signal.aborted) {
    const sentAt = performance.now();
    if (sentAt - Math.max(since, provenAt()) > SILENT_MS) throw new Error("no message arrives");
    // Waits neither for the disk of the server nor for a standby. If it fails, no beat arrives, which ends this loop.
    await pool
      .query("select set_config('synchronous_commit', 'off', true), pg_notify($1, $2)", [channel, String(sentAt)])
      .catch(() => undefined);
    await sleep(Math.max(0, sentAt + BEAT_MS - performance.now()), undefined, { signal }).catch(() => undefined);
  }
}

interface Listener {
  url: string;
  channels: readonly string[];
  receive(message: pg.Notification): void;
}

/**
 * Listens on one connection while `use` runs.
 * @param use gets a signal that aborts when the connection is lost
 * @throws when the connection cannot be opened or is lost; the error of `use`
 */
async function withListener(
  { url, channels, receive }: Listener,
  stopping: AbortSignal,
  use: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const { client, lost, destroy } = openClient(url);
  const ended = new AbortController();
  stopping.addEventListener("abort", destroy, { once: true });
  let using: Promise<void> | undefined;
  try {
    await Promise.race([lost, client.connect()]);
    const listening = client.query(channels.map((channel) => `listen "${channel}"`).join(";"));
    await Promise.race([lost, withTimeout(CONNECT_MS, listening)]);
    client.on("notification", receive);
    using = use(AbortSignal.any([ended.signal, stopping]));
    await Promise.race([lost, using]);
  } finally {
    client.removeAllListeners("notification");
    stopping.removeEventListener("abort", destroy);
    ended.abort();
    destroy();
    await using?.catch(() => undefined);
  }
}

/** A connection that can be closed at once, also when the server does not answer. `lost` rejects when it ends. */
function openClient(url: string): { client: pg.Client; lost: Promise<never>; destroy(): void } {
  const socket = new Socket();
  const client = new pg.Client({
    ...tlsOf(url),
    stream: () => socket,
    connectionTimeoutMillis: CONNECT_MS,
    application_name: "chorus listen",
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  const { promise: lost, reject } = Promise.withResolvers<never>();
  lost.catch(() => undefined);
  client.on("error", reject).on("end", () => reject(new Error("the connection has ended")));
  return { client, lost, destroy: () => socket.destroy() };
}
