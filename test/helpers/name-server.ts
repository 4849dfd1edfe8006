import { createSocket, type RemoteInfo } from "node:dgram";
import { once } from "node:events";
import { isIPv4 } from "node:net";
import type { Lifetime } from "./lifetime.ts";

/** How a name server answers a question. */
export interface NameAnswer {
  /** IPv4 addresses. Default: none, which says that the name does not exist. */
  addresses?: readonly string[];
  /** Wait before the answer, in milliseconds; infinite: there is none. Default 0. */
  afterMs?: number;
}

export interface NameServer {
  /** Address and port, such as `127.0.0.1:40123`. */
  readonly address: string;
  /** The names that were asked for, each once for A and once for AAAA. */
  readonly asked: string[];
}

const TYPE_A = 1;
const HEADER_BYTES = 12;

/** Starts a name server (DNS over UDP) and stops it after the test. */
export async function startNameServer(
  t: Lifetime,
  answer: (name: string) => NameAnswer,
  { host = "127.0.0.1", port = 0 }: { host?: string; port?: number } = {},
): Promise<NameServer> {
  const asked: string[] = [];
  const timers = new Set<NodeJS.Timeout>();
  const socket = createSocket("udp4");
  socket.on("message", (query: Buffer, from: RemoteInfo) => {
    const { name, type, end } = questionOf(query);
    asked.push(name);
    const { addresses = [], afterMs = 0 } = answer(name);
    if (afterMs === Infinity) return;
    const timer = setTimeout(() => {
      timers.delete(timer);
      socket.send(responseTo(query, end, type, addresses), from.port, from.address);
    }, afterMs);
    timers.add(timer);
  });
  socket.bind(port, host);
  await once(socket, "listening");
  t.onTestFinished(async () => {
    for (const timer of timers) clearTimeout(timer);
    const closed = once(socket, "close");
    socket.close();
    await closed;
  });
  return { address: `${host}:${socket.address().port}`, asked };
}

/** The first question of a query: name, type, and the offset after it. */
function questionOf(query: Buffer): { name: string; type: number; end: number } {
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (let length = query.readUInt8(at); length > 0; length = query.readUInt8(at)) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join(".").toLowerCase(), type: query.readUInt16BE(at + 1), end: at + 5 };
}

function responseTo(query: Buffer, end: number, type: number, addresses: readonly string[]): Buffer {
  const records = type === TYPE_A ? addresses.filter(isIPv4).map(recordOf) : [];
  const response = Buffer.concat([query.subarray(0, end), ...records]);
  // Response, recursion desired and available; code 3: the name does not exist.
  response.writeUInt16BE(addresses.length > 0 ? 0x8180 : 0x8183, 2);
  response.writeUInt16BE(records.length, 6);
  // Drops the additional section of the query.
  response.writeUInt32BE(0, 8);
  return response;
}

/** A record for the name of the question, of type A and class IN, valid for a minute. */
function recordOf(address: string): Buffer {
  return Buffer.from([0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 60, 0, 4, ...address.split(".").map(Number)]);
}
