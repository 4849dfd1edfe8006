import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Lifetime } from "./lifetime.ts";

export interface RawResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** One HTTP/1.1 connection for sending arbitrary bytes, also invalid requests. */
export interface RawConnection {
  readonly socket: Socket;
  send(data: string | Buffer): void;
  /** Reads one whole response. @throws Error when the connection ends first. */
  read(): Promise<RawResponse>;
  /** Waits until the received text, including headers, contains `part`. Returns that text without consuming it. */
  until(part: string): Promise<string>;
  /** Resolves when either side has closed the connection. */
  readonly closed: Promise<unknown>;
}

/**
 * Opens a connection to the host of `url`, which is destroyed after the test.
 * @param options.allowHalfOpen keeps this side open when the server closes its side
 */
export async function openRaw(
  t: Lifetime,
  url: string,
  options: { allowHalfOpen?: boolean } = {},
): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), ...options });
  const closed = new Promise((resolve) => socket.on("close", resolve));
  t.onTestFinished(() => void socket.destroy());
  socket.on("error", () => undefined);
  await once(socket, "connect");
  let data = "";
  let ended = false;
  let wake = Promise.withResolvers<void>();
  const change = () => {
    wake.resolve();
    wake = Promise.withResolvers<void>();
  };
  // One character per byte, so that lengths are byte counts.
  socket.setEncoding("latin1");
  socket.on("data", (chunk: string) => {
    data += chunk;
    change();
  });
  socket.on("close", () => {
    ended = true;
    change();
  });

  async function more(): Promise<void> {
    if (ended) throw new Error(`the connection ended after: ${data.slice(0, 500)}`);
    await wake.promise;
  }

  function take(length: number): string {
    const taken = data.slice(0, length);
    data = data.slice(length);
    return taken;
  }

  async function takeThrough(delimiter: string): Promise<string> {
    while (!data.includes(delimiter)) await more();
    return take(data.indexOf(delimiter) + delimiter.length);
  }

  async function takeExactly(length: number): Promise<string> {
    while (data.length < length) await more();
    return take(length);
  }

  async function chunked(): Promise<string> {
    let body = "";
    for (;;) {
      const length = Number.parseInt(await takeThrough("\r\n"), 16);
      body += await takeExactly(length);
      await takeThrough("\r\n");
      if (length === 0) return body;
    }
  }

  return {
    socket,
    closed,
    send: (text) => void socket.write(text),
    async read() {
      const [first = "", ...lines] = (await takeThrough("\r\n\r\n")).trimEnd().split("\r\n");
      const status = Number(first.split(" ")[1]);
      const headers = Object.fromEntries(
        lines.map((line) => {
          const colon = line.indexOf(":");
          return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
        }),
      );
      const length = Number(headers["content-length"] ?? 0);
      const bytes = headers["transfer-encoding"] === "chunked" ? await chunked() : await takeExactly(length);
      return { status, headers, body: Buffer.from(bytes, "latin1").toString() };
    },
    async until(part) {
      while (!data.includes(part)) await more();
      return data;
    },
  };
}

/** The request line and headers of a request, as text for a raw connection. */
export function head(method: string, target: string, headers: Record<string, string | number> = {}): string {
  const lines = Object.entries({ Host: "test", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`;
}
