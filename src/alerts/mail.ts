import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { NodemailerError, SendMailOptions, SMTPSentMessageInfo } from "nodemailer";
import type { MailConfig } from "../config/mail.ts";
import { invalid } from "../contract/failure.ts";
import { MAX_RECIPIENTS, mailDomain, recipientsOf } from "../contract/mail-address.ts";
import { lookupWith, type Resolve } from "../names/resolve.ts";
import type { AttemptEnd, Sender } from "./sender.ts";
import { sentenceOf } from "./sentence.ts";

/**
 * Longest times in milliseconds: of a whole attempt, which is shorter than the minute for which it holds its event; to
 * connect, until the greeting, and without a byte.
 */
const LONGEST = { attempt: 30_000, connect: 10_000, greeting: 20_000, silence: 20_000 };
/** Most bytes of an answer of the mail server. */
const MAX_ANSWER = 65_536;
/** Most characters of a subject. */
const MAX_SUBJECT = 200;

/**
 * Creates the sender of e-mail. Each event is one mail in plain text. Each attempt sends the same mail over a
 * connection of its own. The caller bounds the number of attempts at a time.
 * @param config undefined: no e-mail is sent
 * @param resolve resolves the name of the mail server
 * @param longest see `LONGEST`
 */
export function createMailer(config: MailConfig | undefined, resolve: Resolve, longest = LONGEST): Sender {
  const closing = new AbortController();
  return {
    checkUrl(field, url) {
      const problem = problemOf(config, url);
      if (problem) throw invalid(field, `${field} ${problem}`);
    },
    async send({ id, url, body }) {
      // The configuration may have changed since the address was set.
      const problem = problemOf(config, url);
      const to = recipientsOf(url);
      if (problem || !config || !to) return { error: `The e-mail address ${problem}` };
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(longest.attempt)]);
      const socket = connect({ host: config.host, port: config.port, lookup: lookupWith(resolve), signal });
      // The library listens only while it sends.
      socket.on("error", () => {});
      try {
        await untilConnected(socket, longest.connect);
        const transport = await transportOver(socket, config, longest);
        return endOf(await transport.sendMail({ ...mailOf(config.from, to, id, body), signal }));
      } catch (error) {
        if (closing.signal.aborted) return { error: "This service stopped before the mail was sent.", isCut: true };
        if (signal.aborted) return { error: `The mail was not sent within ${longest.attempt / 1_000} seconds.` };
        return failureOf(error);
      } finally {
        socket.destroy();
      }
    },
    async close() {
      closing.abort();
    },
  };
}

/** What is wrong with an address, as the rest of a sentence. */
function problemOf(config: MailConfig | undefined, url: string): string | undefined {
  if (!config) {
    const what = "is an e-mail address, but this service sends no e-mail.";
    return `${what} Use a webhook, or ask the operator to set CHORUS_SMTP_URL.`;
  }
  const to = recipientsOf(url);
  if (!to)
    return `must be mailto: and up to ${MAX_RECIPIENTS} e-mail addresses with commas between them, without names.`;
  const { domains } = config;
  const isAllowed = (domain: string) =>
    domains.some((one) => (one.startsWith(".") ? domain.endsWith(one) : domain === one));
  const foreign = domains.length > 0 && to.find((address) => !isAllowed(mailDomain(address)));
  return foreign
    ? `has ${foreign}, but e-mail is sent only to ${domains.join(", ")} (CHORUS_MAIL_DOMAINS).`
    : undefined;
}

async function untilConnected(socket: Socket, ms: number): Promise<void> {
  const timer = setTimeout(() => socket.destroy(Object.assign(new Error(), { code: "ETIMEDOUT" })), ms);
  try {
    await once(socket, "connect");
  } finally {
    clearTimeout(timer);
  }
}

/** What sends one mail over a connection to the mail server. */
async function transportOver(connection: Socket, { host, port, secure, login }: MailConfig, longest: typeof LONGEST) {
  // Loaded with the first mail, because most services send none.
  const { createTransport } = await import("nodemailer");
  return createTransport({
    ...{ connection, host, port, secure, requireTLS: !secure && login !== undefined },
    ...(login ? { auth: { user: login.user, pass: login.password }, forceAuth: true } : {}),
    ...{ greetingTimeout: longest.greeting, socketTimeout: longest.silence, socketCloseTimeout: 0 },
    ...{ maxResponseSize: MAX_ANSWER, disableFileAccess: true, disableUrlAccess: true },
  });
}

/** An event as a mail. It is the same for each attempt, so that a mail that arrives twice can be seen as one. */
function mailOf(from: string, to: readonly string[], id: string, event: string): SendMailOptions {
  // The sentence has names that others chose. None of them may begin a line, and so another header.
  const text = sentenceOf(event).replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, " ");
  const { timestamp } = JSON.parse(event);
  return {
    from: { name: "Chorus", address: from },
    to: to.map((address) => ({ name: "", address })),
    subject: [...text].slice(0, MAX_SUBJECT).join(""),
    text: `${text}\n`,
    date: new Date(timestamp),
    messageId: `<${id}@${mailDomain(from)}>`,
    headers: { "Auto-Submitted": "auto-generated" },
  };
}

/** How an attempt ended in which the server took the mail for at least one recipient. */
function endOf({ rejected, rejectedErrors, response }: SMTPSentMessageInfo): AttemptEnd {
  const status = Number(/^\d{3}/.exec(response)?.[0] ?? 250);
  if (rejected.length === 0) return { status };
  // Another attempt would send the mail again to those who have it.
  const refusal = codesOf(rejectedErrors?.[0]?.response);
  return { status, error: `The mail server refused ${rejected.join(", ")}${refusal}.`, isDelivered: true };
}

/** Says why a mail was not sent. The text of the server's answer is left out: it can name hosts of the own network. */
function failureOf(error: unknown): AttemptEnd {
  const {
    code,
    responseCode: status,
    response,
    originalCode,
  }: Partial<NodemailerError> = error instanceof Error ? error : {};
  if (code === "ETLS") return { error: "The mail server offers no TLS that this service trusts." };
  if (status === undefined)
    return { error: `The mail server cannot be reached (${originalCode ?? code ?? "no answer"}).` };
  const what = code === "EAUTH" ? "the sign-in of this service" : "the mail";
  return { status, error: `The mail server refused ${what}${codesOf(response)}.` };
}

/** The codes of an answer of SMTP, such as ` (550 5.1.1)`. */
function codesOf(response = ""): string {
  const [codes] = /^\d{3}([ -]\d\.\d{1,3}\.\d{1,3})?/.exec(response) ?? [];
  return codes ? ` (${codes.replace("-", " ")})` : "";
}
