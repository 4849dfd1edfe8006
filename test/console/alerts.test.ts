import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import type { Page } from "playwright-core";
import { test as base, describe } from "vitest";
import { adviceOf } from "../../console/src/alerts/advice.ts";
import { causeOf, eventOf } from "../../console/src/alerts/event.ts";
import { AlertDeliverySchema, AlertDeliveryState } from "../../gen/chorus/admin/v1/alerts_pb.js";
import { partsOf, startMailServer } from "../alerts/mail-server.ts";
import { type Receiver, signatureOf, startReceiver } from "../alerts/receiver.ts";
import { fixture, type Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";
import { openConsole, signIn, skipReason, visit } from "./chromium.ts";

const ENV = { CHORUS_ALERTS_MS: '{"compareMs":100,"retryMs":50}', CHORUS_WEBHOOK_HOSTS: "127.0.0.1" };

const test = base.extend(
  "console",
  { scope: "file" },
  fixture((t: Lifetime) => openConsole(t, ENV)),
);

/** The row of a delivery; the table loads again every five seconds. */
const row = (page: Page, ...texts: string[]) =>
  texts.reduce((rows, hasText) => rows.filter({ hasText }), page.getByRole("row")).first();

async function storeSecret(page: Page): Promise<string> {
  const secret = await page.locator("[data-secret]").innerText();
  // Escape must not close a dialog that shows the secret only once.
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "I have stored it" }).click();
  return secret;
}

function assertSigned({ received: [first] }: Receiver, secret: string): void {
  assert.ok(first);
  assert.equal(first.headers["webhook-signature"], signatureOf(first, secret));
}

describe.skipIf(skipReason !== undefined)("the page of alerts", () => {
  test("sets alerts, sends a test and lists deliveries, makes a new secret, and removes them", async ({
    console: { open, token, problems },
    onTestFinished,
  }) => {
    const receiver = await startReceiver({ onTestFinished });
    const page = await open("/console/alerts");
    await signIn(page, token);
    await page.getByText("There are no deliveries yet.").waitFor();
    const save = page.getByRole("button", { name: "Save" });
    await page.getByLabel("Webhook URL").fill("http://10.0.0.1/hook");
    assert.equal(await save.isDisabled(), true, "saves without a threshold");
    await page.getByLabel("Spend limit used").fill("0 ");
    await save.click();
    assert.equal(await page.evaluate("document.activeElement.validity.patternMismatch"), true);
    await page.getByLabel("Spend limit used").fill(" 80");
    await save.click();
    await page.getByRole("alert").getByText("alerts.webhook_url", { exact: true }).waitFor();

    await page.getByLabel("Webhook URL").fill(receiver.url);
    await page.getByLabel("Credit below").fill("99999999 ");
    await page.getByLabel("Format").selectOption("Message, for a channel");
    await page.getByText("For incoming webhooks of Slack").waitFor();
    await page.getByLabel("Format").selectOption("Signed JSON, for a program");
    await save.click();
    const secret = await storeSecret(page);
    assert.match(secret, /^whsec_[\w+/]{32}$/);
    assert.ok(!(await page.content()).includes(secret), "the page still shows the secret");
    await row(page, "Raised", "threshold 99,999,999", "Delivered", "Status 200").waitFor();
    assertSigned(receiver, secret);

    receiver.statuses.push(500, 500);
    await page.getByRole("button", { name: "Send a test" }).click();
    const result = page.getByRole("status").filter({ hasText: "test" });
    await result.getByText("The test has not arrived").waitFor();
    await result.getByText("The webhook answered 200. Look for the test").waitFor();
    await row(page, "Test", "Delivered", "3").waitFor();

    await page.getByRole("button", { name: "New secret" }).click();
    await page.getByRole("button", { name: "Make a new secret" }).click();
    const next = await storeSecret(page);
    assert.notEqual(next, secret);

    await page.getByLabel("Format").selectOption("Message, for a channel");
    await save.click();
    await page.getByRole("button", { name: "Send a test" }).waitFor();
    await page.reload();
    await page.getByRole("button", { name: "Send a test" }).waitFor();
    assert.equal(await page.getByLabel("Format").inputValue(), "slack");
    assert.equal(await page.getByLabel("Spend limit used").inputValue(), "80");
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove the alerts" }).click();
    await page.getByText("Removed the alerts.").waitFor();
    assert.equal(await page.getByLabel("Webhook URL").inputValue(), "");
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("sends alerts by e-mail to addresses as people write them", async ({ onTestFinished }) => {
    const mail = await startMailServer({ onTestFinished });
    const smtp = { CHORUS_SMTP_URL: `smtp://127.0.0.1:${mail.port}`, CHORUS_MAIL_FROM: "chorus@example.com" };
    const { open, token, problems } = await openConsole({ onTestFinished }, { ...ENV, ...smtp });
    const page = await open("/console/alerts");
    await signIn(page, token);
    const target = page.getByLabel("e-mail addresses");
    await target.fill("ann@example.com,  bob@example.com");
    await page.getByText("Each alert is one mail to all of them.").waitFor();
    assert.equal(await page.getByLabel("Format").count(), 0);
    await page.getByLabel("Failed").fill("50");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved the alerts.").waitFor();
    assert.equal(await target.inputValue(), "ann@example.com, bob@example.com");
    assert.equal(await page.getByRole("button", { name: "New secret" }).count(), 0);
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("status").getByText("The mail server has taken it.").waitFor();
    await row(page, "Test", "Delivered", "Status 250").waitFor();
    assert.deepEqual(mail.mails[0]?.to, ["ann@example.com", "bob@example.com"]);
    assert.ok(mail.mails[0]);
    assert.equal(partsOf(mail.mails[0]).text, "Chorus: this is a test of your alerts.\r\n");
    await page.getByRole("button", { name: "Send a test" }).click();
    await page.getByRole("alert").getByText("A test was sent less than 60 s ago").waitFor();
    await target.fill("ann@example.com, bob");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("up to 5 e-mail addresses").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Remove the alerts" }).click();
    await page.getByText("Removed the alerts.").waitFor();
    assert.deepEqual(problems, []);
    await page.context().close();
  });

  test("sets the operators' alerts, which watch all workspaces", async ({
    console: { open, service, problems },
    onTestFinished,
  }) => {
    const receiver = await startReceiver({ onTestFinished });
    await service.post("/v1/generate", { prompt: "What is a choir?" });
    const page = await open("/console/operator", { viewport: { width: 390, height: 844 } });
    await page.getByLabel("Operator token").fill(service.operatorToken);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
    await visit(page, "Alerts");
    await page.getByLabel("Webhook URL").fill(receiver.url);
    await page.getByLabel("Credit below").fill("99999999");
    await page.keyboard.press("Enter");
    const secret = await storeSecret(page);
    await row(page, "Raised", "default", "Delivered").waitFor();
    await until(() => receiver.received.length === 1);
    assertSigned(receiver, secret);
    assert.deepEqual(problems, []);
    await page.context().close();
  });
});

base("says what a test has become, and what to do", () => {
  const { DELIVERED, WAITING, FAILED } = AlertDeliveryState;
  const said = (isMail: boolean, state: AlertDeliveryState, responseStatus: number, error: string) => {
    const { tone, title, text } = adviceOf(create(AlertDeliverySchema, { state, responseStatus, error }), isMail);
    return `${tone}: ${title}. ${text}`.trim();
  };
  const missed = "bad: The test has not arrived.";
  assert.deepEqual(adviceOf(undefined, false), { tone: "info", title: "Sending a test", text: "" });
  assert.equal(said(false, WAITING, 0, ""), "info: Sending a test.");
  assert.match(said(false, DELIVERED, 204, ""), /^info: The test has arrived\. The webhook answered 204\. Look /);
  for (const [status, error, todo] of [
    [500, "The webhook answered 500.", "Look into the log of the program behind the address."],
    [404, "The webhook answered 404.", "Check the address and the format."],
    [403, "The webhook answered 403.", "Check the token in the address."],
    [308, "The webhook answered 308.", "Redirects are not followed: set the address to which it leads."],
    [
      0,
      "The webhook cannot be reached (ECONNREFUSED).",
      "Check the address, and that it can be reached from the service.",
    ],
  ] as const)
    assert.equal(said(false, status === 404 ? FAILED : WAITING, status, error), `${missed} ${error} ${todo}`);
  assert.match(said(false, WAITING, 0, "The webhook's name leads to an address that is not public."), /WEBHOOK_HOSTS/);
  assert.match(said(true, DELIVERED, 250, ""), /The mail server has taken it\./);
  assert.match(
    said(true, DELIVERED, 250, "The mail server refused a@b (550)."),
    /^warn: .*a@b \(550\)\. Correct the others/,
  );
  assert.match(said(true, WAITING, 535, "…"), /CHORUS_SMTP_URL/);
  assert.match(said(true, WAITING, 550, "…"), /Check the addresses\./);
  assert.match(said(true, WAITING, 451, "…"), /Wait for the next attempt\./);
});

base("leads from an event to the page of what it is about", () => {
  const address = (data: object) =>
    causeOf(JSON.stringify({ type: "alert.raised", data }), new Date("2026-03-14T09:00:00Z"))?.address;
  assert.equal(
    address({ alert: "failure_share" }),
    "/console/activity?from=2026-03-14T08%3A50%3A00.000Z&to=2026-03-14T09%3A00%3A00.000Z&outcome=failed",
  );
  assert.equal(address({ alert: "spend_share" }), "/console/limits#spend");
  assert.equal(address({ alert: "cap_share", subject: "tag:team=a b" }), "/console/subjects?subject=tag%3Ateam%3Da+b");
  assert.equal(address({ alert: "cap_share", subject: "key:key_1" }), undefined);
  assert.equal(causeOf('{"type":"alert.test"}', new Date()), undefined);
});

base("writes an event as a figure and its threshold", () => {
  const text = (type: string, data: object) => {
    const { title, text: figure } = eventOf(JSON.stringify({ type, data }));
    return `${title} ${figure}`.trim();
  };
  assert.equal(text("alert.test", {}), "Test");
  assert.equal(
    text("alert.raised", { alert: "credit_left", value: 99.5, threshold: 1000 }),
    "Raised 99.5 credits left, threshold 1,000",
  );
  assert.equal(
    text("alert.cleared", { alert: "failure_share", value: 1 / 7, threshold: 0.2 }),
    "Cleared 14.3\u00a0% of requests failed, threshold 20\u00a0%",
  );
  assert.equal(
    text("alert.raised", { alert: "spend_share", value: 0.8, threshold: 0.07 }),
    "Raised 80\u00a0% of a spend limit used, threshold 7\u00a0%",
  );
  assert.equal(
    text("alert.raised", { alert: "spend_share", period: "week", value: 0.8, threshold: 0.07 }),
    "Raised 80\u00a0% of the spend limit of the week used, threshold 7\u00a0%",
  );
});
