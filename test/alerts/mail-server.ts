import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";
import type { Lifetime } from "../helpers/lifetime.ts";

/** A mail as it arrived. */
export interface Mail {
  readonly from: string;
  readonly to: readonly string[];
  /** Headers, an empty line and the text, with CR and LF. */
  readonly raw: string;
  readonly user: string | undefined;
}

export interface MailServer {
  readonly port: number;
  readonly mails: Mail[];
  /** Codes and texts with which the next mails are refused, such as `451 4.7.1 Later`. */
  readonly refusals: string[];
  /** Recipients that are refused. */
  readonly unknown: Set<string>;
}

const refusal = (text: string) => Object.assign(new Error(text.slice(4)), { responseCode: Number(text.slice(0, 3)) });

/** Starts a mail server and stops it after the test. Without `options` it offers no TLS and needs no login. */
export async function startMailServer(t: Lifetime, options: SMTPServerOptions = {}): Promise<MailServer> {
  const mails: Mail[] = [];
  const refusals: string[] = [];
  const unknown = new Set<string>();
  const server = new SMTPServer({
    ...{ authOptional: true, disabledCommands: ["STARTTLS"], disableReverseLookup: true, closeTimeout: 100 },
    onRcptTo({ address }, _, done) {
      done(unknown.has(address) ? refusal("550 5.1.1 No such user on mx7.internal") : undefined);
    },
    async onData(stream, { envelope, user }, done) {
      const chunks: Buffer[] = [];
      for await (const chunk of stream) chunks.push(chunk);
      const text = refusals.shift();
      const from = envelope.mailFrom ? envelope.mailFrom.address : "";
      const to = envelope.rcptTo.map(({ address }) => address);
      mails.push({ from, to, raw: Buffer.concat(chunks).toString(), user: user ? String(user) : undefined });
      done(text === undefined ? undefined : refusal(text));
    },
    ...options,
  });
  server.on("error", () => {});
  const listener = server.listen(0, "127.0.0.1");
  await once(listener, "listening");
  t.onTestFinished(() => new Promise((resolve) => server.close(() => resolve())));
  return { port: (listener.address() as AddressInfo).port, mails, refusals, unknown };
}

/** The headers of a mail by their names in lower case, as they stand in it, and its text without soft breaks. */
export function partsOf({ raw }: Mail): { headers: Map<string, string>; text: string } {
  const [head = "", ...rest] = raw.split("\r\n\r\n");
  const lines = head.replace(/\r\n[ \t]+/g, " ").split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const at = line.indexOf(":");
    return [line.slice(0, at).toLowerCase(), line.slice(at + 1).trim()];
  });
  if (new Set(headers.map(([name]) => name)).size < headers.length) throw new Error(`A header is there twice: ${head}`);
  return { headers: new Map(headers), text: rest.join("\r\n\r\n").replaceAll("=\r\n", "") };
}
