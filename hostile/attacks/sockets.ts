import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Attack } from "../scenario.ts";

let sources = 0;

/**
 * An address of this machine, another one with each call. One address has 28,000 ports for connections to one server,
 * and each is blocked for a minute after its connection.
 */
export function sourceAddress(): string | undefined {
  return process.platform === "linux" ? `127.0.0.${2 + (sources++ % 200)}` : undefined;
}

/** Opens a connection of an attacker, which counts the statuses that arrive on it and never closes it. */
export function openSocket(attack: Attack, url: string): Socket {
  const { hostname: host, port } = new URL(url);
  const localAddress = sourceAddress();
  const socket = connect({
    host,
    port: Number(port),
    allowHalfOpen: true,
    ...(localAddress === undefined ? {} : { localAddress }),
  });
  socket.on("error", (error: NodeJS.ErrnoException) => attack.count(error.code ?? error.message));
  socket.on("data", (data: Buffer) => countStatuses(attack, data));
  return socket;
}

/** Counts the status lines in `data`. Bodies of the service contain no such text. */
export function countStatuses(attack: Attack, data: Buffer): void {
  for (const [, status = ""] of data.toString("latin1").matchAll(/HTTP\/1\.1 (\d{3})/g)) attack.count(status);
}

/** Request line and headers of a POST request. */
export function head(url: string, path: string, headers: Readonly<Record<string, string | number>>): string {
  const lines = Object.entries({ host: new URL(url).host, "content-type": "application/json", ...headers });
  return `POST ${path} HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n`;
}

/** A whole request for an answer. */
export function wholeRequest(url: string, key: string, body: object, path = "/v1/generate"): string {
  const text = JSON.stringify(body);
  return head(url, path, { "x-api-key": key, "content-length": Buffer.byteLength(text) }) + text;
}

/** Calls `run` with the number of the call, at a constant rate, until the attack ends. Late calls are made up for. */
export async function atRate({ signal }: Attack, perSecond: number, run: (i: number) => void, most = Infinity) {
  const from = performance.now();
  for (let i = 0; i < most && !signal.aborted; ) {
    const due = Math.min(most, ((performance.now() - from) * perSecond) / 1_000);
    for (; i < due; i++) run(i);
    await sleep(5);
  }
}

/** Resolves when the attack ends. */
export async function untilEnd({ signal }: Attack): Promise<void> {
  while (!signal.aborted) await sleep(50);
}
