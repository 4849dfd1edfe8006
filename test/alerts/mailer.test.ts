import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { promisify } from "node:util";
import fc from "fast-check";
import type { SMTPServerOptions } from "smtp-server";
import { test } from "vitest";
import { createMailer } from "../../src/alerts/mail.ts";
import type { MailConfig } from "../../src/config/mail.ts";
import { recipientsOf } from "../../src/contract/mail-address.ts";
import { codePoint } from "../helpers/code-point.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { partsOf, startMailServer } from "./mail-server.ts";

const execute = promisify(execFile);
const missing = await execute("openssl", ["version"]).then(
  () => undefined,
  () => "needs the program openssl",
);

const resolveLocal = async () => [{ address: "127.0.0.1", family: 4 }];
const serverAt = (port: number, more: Partial<MailConfig> = {}): MailConfig => ({
  ...{ host: "mail.example", port, secure: false, login: undefined, from: "chorus@example.com", domains: [] },
  ...more,
});

const raised = (data: object) =>
  JSON.stringify({ type: "alert.raised", timestamp: "2026-11-22T10:52:52Z", data: { alert: "credit_left", ...data } });
const attempt = (url: string, body = raised({ workspace: "team", value: 99.5, threshold: 100 })) => ({
  ...{ id: "evt_1", url, secret: "whsec_hidden", body, format: "event" as const },
});

test("sends the same mail at each attempt, in plain text", async (t) => {
  const server = await startMailServer(t);
  const mailer = createMailer(serverAt(server.port), resolveLocal);
  server.refusals.push("451 4.7.1 Try again later, mx7.internal says");
  const to = attempt("mailto:ann@example.com,bob+alerts@example.org");
  assert.deepEqual(await mailer.send(to), { status: 451, error: "The mail server refused the mail (451 4.7.1)." });
  assert.deepEqual(await mailer.send(to), { status: 250 });
  const [first, second] = server.mails;
  assert.ok(first && second);
  assert.deepEqual(second, first);
  assert.equal(first.from, "chorus@example.com");
  assert.deepEqual(first.to, ["ann@example.com", "bob+alerts@example.org"]);
  const { headers, text } = partsOf(first);
  assert.deepEqual(Object.fromEntries(headers), {
    from: "Chorus <chorus@example.com>",
    to: "ann@example.com, bob+alerts@example.org",
    subject: "Chorus, workspace team: 99.5 credits are left; the alert is at 100.",
    "message-id": "<evt_1@example.com>",
    date: "Sun, 22 Nov 2026 10:52:52 +0000",
    "auto-submitted": "auto-generated",
    "mime-version": "1.0",
    "content-type": "text/plain; charset=utf-8",
    "content-transfer-encoding": "7bit",
  });
  assert.equal(text, "Chorus, workspace team: 99.5 credits are left; the alert is at 100.\r\n");
});

test("says which recipients are refused, and sends nothing again to those who have the mail", async (t) => {
  const server = await startMailServer(t);
  server.unknown.add("bob@example.com").add("eve@example.com");
  const mailer = createMailer(serverAt(server.port), resolveLocal);
  assert.deepEqual(await mailer.send(attempt("mailto:ann@example.com,bob@example.com")), {
    status: 250,
    error: "The mail server refused bob@example.com (550 5.1.1).",
    isDelivered: true,
  });
  assert.deepEqual(await mailer.send(attempt("mailto:bob@example.com,eve@example.com")), {
    status: 550,
    error: "The mail server refused the mail (550 5.1.1).",
  });
  assert.deepEqual(
    server.mails.map(({ to }) => to),
    [["ann@example.com"]],
  );
});

const HEADERS =
  "from to subject message-id date auto-submitted mime-version content-type content-transfer-encoding".split(" ");

/** Texts with what ends a line, begins a header or ends a mail in them. */
const hostile = fc
  .array(
    fc.oneof(
      fc.string({ unit: codePoint, maxLength: 12 }),
      fc.constantFrom("\r\n", "\n", "\r", "\0", "\u2028", "\u0085", "\r\n\r\n", "\r\n.\r\n", "Bcc: eve@example.com"),
      fc.constantFrom("=?utf-8?q?=0D=0ABcc:eve@example.com?=", "x".repeat(300), "ü", "😀", "<", ">", ",", '"'),
    ),
    { maxLength: 8 },
  )
  .map((parts) => parts.join(""));

test("no name in an event adds a header, a recipient or another mail", async (t) => {
  const server = await startMailServer(t);
  const mailer = createMailer(serverAt(server.port), resolveLocal);
  const events = fc
    .sample(fc.tuple(hostile, hostile), 300)
    .map(([workspace, subject]) =>
      raised({ alert: "cap_share", workspace, subject, limit: "user:requests_total", value: 1, threshold: 1 }),
    );
  // The server of the test waits 100 ms before it greets.
  const sending = events.map((event) => mailer.send(attempt("mailto:ann@example.com", event)));
  for (const [i, end] of (await Promise.all(sending)).entries()) assert.deepEqual(end, { status: 250 }, events[i]);
  assert.equal(server.mails.length, events.length);
  for (const mail of server.mails) {
    assert.deepEqual(mail.to, ["ann@example.com"]);
    assert.deepEqual([...partsOf(mail).headers.keys()].sort(), HEADERS.toSorted());
    for (const line of mail.raw.split("\r\n")) assert.ok(line.length <= 998 && !/[\r\n\0]/.test(line), mail.raw);
  }
});

test("an address is one recipient or refused", () => {
  fc.assert(
    fc.property(
      fc.oneof(
        hostile,
        hostile.map((text) => `ann${text}@example.com`),
      ),
      (text) => {
        const found = recipientsOf(`mailto:${text}`);
        if (!found) return;
        assert.ok(found.length <= 5);
        for (const address of found) assert.match(address, /^[!-~]+@[a-z0-9.-]+$/i);
        assert.equal(`mailto:${found.join(",")}`, `mailto:${text}`);
        assert.doesNotMatch(text, /[\s<>"(),:;\\[\]%&#?/].*@.*@|[<>"();:\\[\]%&#?/\s]/);
      },
    ),
    { numRuns: 3_000 },
  );
  for (const text of [
    "",
    "ann",
    "ann@",
    "@b",
    "a@b,",
    "a@b,,c@d",
    "a@b, c@d",
    "Ann <a@b>",
    "a@b?bcc=c@d",
    "a@b@c",
    "a@-b",
  ])
    assert.equal(recipientsOf(`mailto:${text}`), undefined, text);
  assert.equal(recipientsOf(`mailto:${Array(6).fill("a@b").join(",")}`), undefined);
  assert.equal(recipientsOf("MAILTO:a@b"), undefined);
  assert.equal(recipientsOf(`mailto:${Array(5).fill("a@b").join(",")}`)?.length, 5);
});

/** Starts a server that runs `answer` with each connection. */
async function startRaw(t: Lifetime, answer: (socket: Socket) => void): Promise<{ port: number; sockets: Socket[] }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket.on("error", () => {}));
    answer(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    server.close();
    await once(server, "close");
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

test("gives up a mail server that is silent, slow or away, and ends attempts when it is closed", async (t) => {
  const short = { attempt: 400, connect: 300, greeting: 100, silence: 100 };
  const silent = await startRaw(t, () => {});
  const to = attempt("mailto:ann@example.com");
  const send = (port: number, longest = short) => createMailer(serverAt(port), resolveLocal, longest).send(to);
  assert.deepEqual(await send(silent.port), { error: "The mail server cannot be reached (ETIMEDOUT)." });
  // A line at a time, which no limit on silence ends.
  const slow = await startRaw(t, (socket) => {
    const timer = setInterval(() => socket.write("220-slow\r\n"), 30);
    socket.on("close", () => clearInterval(timer));
  });
  const patient = { connect: 60_000, greeting: 60_000, silence: 60_000 };
  assert.deepEqual(await send(slow.port, { ...patient, attempt: 400 }), {
    error: "The mail was not sent within 0.4 seconds.",
  });
  await until(() => [...silent.sockets, ...slow.sockets].every((socket) => socket.closed));
  const rude = await startRaw(t, (socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"));
  assert.match((await send(rude.port)).error ?? "", /^The mail server cannot be reached \([A-Z]+\)\.$/);
  const away = await startRaw(t, () => {});
  const lost = createMailer(serverAt(away.port), async () => Promise.reject(new Error("no such host")), short);
  assert.match((await lost.send(to)).error ?? "", /^The mail server cannot be reached/);

  const mailer = createMailer(serverAt(silent.port), resolveLocal, { ...patient, attempt: 60_000 });
  const sending = mailer.send(to);
  await mailer.close();
  const cut = { error: "This service stopped before the mail was sent.", isCut: true };
  assert.deepEqual([await sending, await mailer.send(to)], [cut, cut]);
});

test("signs in only over TLS that it trusts", async (t) => {
  t.skip(missing !== undefined, missing);
  const folder = await mkdtemp(join(tmpdir(), "chorus-mail-"));
  t.onTestFinished(() => rm(folder, { recursive: true }));
  const files = ["-keyout", join(folder, "key"), "-out", join(folder, "cert")];
  const name = ["-subj", "/CN=mail.example", "-addext", "subjectAltName=DNS:mail.example"];
  await execute("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...files, ...name]);
  const [key, cert] = [await readFile(join(folder, "key")), await readFile(join(folder, "cert"), "utf8")];
  const passwords: unknown[] = [];
  const secured: SMTPServerOptions = {
    ...{ key, cert, authOptional: false, disabledCommands: [] },
    onAuth({ username = "", password }, _, done) {
      passwords.push(password);
      if (password === "p@ss") done(null, { user: username });
      else done(new Error("Invalid login"));
    },
  };
  const [plain, upgraded, tls] = [
    await startMailServer(t, { ...secured, disabledCommands: ["STARTTLS"], allowInsecureAuth: true }),
    await startMailServer(t, secured),
    await startMailServer(t, { ...secured, secure: true }),
  ];
  const send = (port: number, secure: boolean, password = "p@ss") =>
    createMailer(serverAt(port, { secure, login: { user: "ann", password } }), resolveLocal).send(
      attempt("mailto:ann@example.com"),
    );
  const none = { error: "The mail server offers no TLS that this service trusts." };
  assert.deepEqual(await send(plain.port, false), none);
  const untrusted = { error: "The mail server cannot be reached (DEPTH_ZERO_SELF_SIGNED_CERT)." };
  assert.deepEqual(await send(upgraded.port, false), untrusted);
  assert.deepEqual(await send(tls.port, true), untrusted);
  assert.deepEqual(passwords, []);

  const trusted = getCACertificates();
  setDefaultCACertificates([...trusted, cert]);
  t.onTestFinished(() => setDefaultCACertificates(trusted));
  assert.deepEqual(await send(upgraded.port, false), { status: 250 });
  assert.deepEqual(await send(tls.port, true), { status: 250 });
  assert.deepEqual([upgraded.mails[0]?.user, tls.mails[0]?.user], ["ann", "ann"]);
  const refused = await send(tls.port, true, "wrong");
  assert.deepEqual(refused, { status: 535, error: "The mail server refused the sign-in of this service (535)." });
});
