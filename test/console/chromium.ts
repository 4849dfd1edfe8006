import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { buffer } from "node:stream/consumers";
import { createClient, type Transport } from "@connectrpc/connect";
import { type Browser, type BrowserContextOptions, chromium, type Download, type Page } from "playwright-core";
import { CreditService } from "../../gen/chorus/admin/v1/credits_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { findChromium } from "../helpers/chromium.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { transportWith } from "../helpers/rpc.ts";
import { ask } from "../helpers/run.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { type ScriptedVendor, startVendor } from "../helpers/vendors.ts";

const DIST = resolve(import.meta.dirname, "../../console/dist/index.html");

/** Longest wait for an element, in milliseconds. It is long because the machine may be busy. */
const TIMEOUT_MS = 30_000;

/** Reason to skip the browser tests; undefined when they can run. */
export const skipReason: string | undefined =
  findChromium() === undefined
    ? "BROWSER TESTS SKIPPED: Chromium is missing. Install Debian's chromium-headless-shell, or name one in CHROMIUM."
    : existsSync(DIST)
      ? undefined
      : "BROWSER TESTS SKIPPED: the console is not built. Run npm run build:console.";

// vitest's summary does not show why tests are skipped.
if (skipReason !== undefined) process.stderr.write(`${skipReason}\n`);

export interface ConsoleTest {
  service: TestService;
  vendor: ScriptedVendor;
  /** Owner token of the workspace `default`. */
  token: string;
  /** Transport with the operator token. */
  transport: Transport;
  /** Exceptions, violations of the Content-Security-Policy and requests to other hosts, one sentence each. */
  problems: string[];
  /** Opens a path of the console in a new browser session. */
  open(path?: string, options?: BrowserContextOptions): Promise<Page>;
}

/** Starts the service with a scripted vendor, and the browser. @param env for the service */
export async function openConsole(t: Lifetime, env: Record<string, string> = {}): Promise<ConsoleTest> {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const service = await startService(t, { env: { ...vendor.env, ...env } });
  const transport = transportWith(service.rpcUrl, service.operatorToken);
  const { token } = await createClient(WorkspaceService, transport).createOwnerToken({ workspace: "default" });
  const browser = await connect(t);
  const problems: string[] = [];
  return {
    problems,
    service,
    vendor,
    token,
    transport,
    async open(path = "/console", options = {}) {
      const context = await browser.newContext({
        baseURL: service.url,
        viewport: { width: 1280, height: 900 },
        reducedMotion: "reduce",
        ...options,
      });
      context.setDefaultTimeout(TIMEOUT_MS);
      const page = await context.newPage();
      watch(page, service.url, problems);
      await page.goto(path);
      return page;
    },
  };
}

function watch(page: Page, origin: string, problems: string[]): void {
  page.on("pageerror", (error) => problems.push(`threw ${error.message}`));
  page.on("console", (message) => {
    if (/Content Security Policy/i.test(message.text())) problems.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== origin)
      problems.push(`requested ${request.url()}`);
  });
}

/** Connects to the browser of the run. The end of the test closes the sessions that it has opened there. */
export async function connect(t: Lifetime): Promise<Browser> {
  const browser = await chromium.connect(await ask("browser"), { timeout: TIMEOUT_MS * 2 });
  t.onTestFinished(() => browser.close());
  return browser;
}

/** The text of a file that a page lets a person download, with its byte order mark. */
export async function downloaded(download: Promise<Download>): Promise<string> {
  return (await buffer(await (await download).createReadStream())).toString();
}

/** Signs in on a page that shows the sign-in. */
export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Owner token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { level: 1, name: "Sign in to your workspace" }).waitFor({ state: "detached" });
  await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
}

/** Opens a page through the navigation. */
export async function visit(page: Page, name: string): Promise<void> {
  const menu = page.getByRole("button", { name: "Menu" });
  if (await menu.isVisible()) await menu.click();
  await page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link", { name, exact: true }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
}

/** Adds purchased credit to a workspace. */
export async function purchase({ transport }: ConsoleTest, amount: string, workspace = "default"): Promise<void> {
  await createClient(CreditService, transport).purchase({ workspace, amount, reference: `invoice ${amount}` });
}
