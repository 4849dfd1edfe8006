import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { BrowserServer } from "playwright-core";
import { openCluster } from "../../src/store/embedded/cluster.ts";
import { bundleService } from "../../tools/bundle.ts";
import { startBrowser } from "./chromium.ts";
import type { CliCall } from "./cli.ts";
import { CliThreads } from "./cli-threads.ts";
import { openTestServer, type TestServer } from "./database.ts";
import { Hosts } from "./hosts.ts";
import { type Action, RUN_VARIABLE } from "./run.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Clients of OpenAI's API that others wrote. They are packages apart, because only their tests need them. */
const FOREIGN_CLIENTS = join(ROOT, "test/foreign-clients");

/**
 * Runs once before all test files, in the main process of vitest. Brings the console up to date and installs packages
 * that only tests need. Starts an HTTP server, at which test files ask for what they share: one Postgres, where each
 * test has databases of its own, the built service, processes that run it, the loaded command line, the folder of a new
 * database, of which tests take copies, and one browser. Each starts at the first request. The processes of the test
 * files inherit the address.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  buildPages();
  installForeignClients();
  let server: Promise<TestServer> | undefined;
  let cluster: Promise<string> | undefined;
  let browser: Promise<BrowserServer> | undefined;
  let service: Promise<string> | undefined;
  const threads = new CliThreads();
  const hosts = new Hosts();
  const actions: Record<Action, (body: string) => Promise<string>> = {
    async create() {
      server ??= openTestServer();
      return (await server).create();
    },
    async drop(url) {
      await (await server)?.drop(url);
      return "";
    },
    cli: async (call) => JSON.stringify(await threads.run(JSON.parse(call))),
    cluster() {
      cluster ??= newCluster();
      return cluster;
    },
    service() {
      service ??= bundleService();
      return service;
    },
    async host(of) {
      service ??= bundleService();
      return hosts.urlFor(of, await service);
    },
    async browser() {
      browser ??= startBrowser();
      return (await browser).wsEndpoint();
    },
    async shell(call) {
      const { code, stdout, stderr } = await threads.run(shellCall(call));
      return `${code}\n${stdout}${stderr}`;
    },
  };
  const listener = createServer(async (request, response) => {
    try {
      response.end(await actions[(request.url ?? "").slice(1) as Action](await text(request)));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  process.env[RUN_VARIABLE] = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  return async () => {
    listener.closeAllConnections();
    listener.close();
    await threads.close();
    await hosts.close();
    await (await server)?.close();
    await (await browser)?.close();
    if (cluster) await rm(await cluster, { recursive: true, force: true });
  };
}

/** Makes a database folder that no server has opened. To make one takes 1.5 s of processor time. @returns its parent */
async function newCluster(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "chorus-cluster-"));
  await chmod(folder, 0o711);
  await openCluster(folder, () => undefined);
  return folder;
}

/** The call of the command line in what the shell of a guide sends: each argument, nothing, each variable. */
function shellCall(sent: string): CliCall {
  const parts = sent.split("\0");
  const end = parts.indexOf("");
  const variables = parts.slice(end + 1).filter((part) => part.includes("="));
  const env = variables.map((part) => [part.slice(0, part.indexOf("=")), part.slice(part.indexOf("=") + 1)] as const);
  return { args: parts.slice(0, end), env: Object.fromEntries(env), input: "" };
}

/** Builds the console again if its sources are newer: the test of `npm start` would do so beside other tests. */
function buildPages(): void {
  execFileSync(process.execPath, ["tools/setup.cjs", "pages"], { cwd: ROOT, stdio: "inherit" });
}

/** Without a network only the tests of these clients fail. */
function installForeignClients(): void {
  try {
    execFileSync(process.execPath, ["../../tools/setup.cjs"], { cwd: FOREIGN_CLIENTS, stdio: "inherit" });
  } catch {
    process.stderr.write("The packages of test/foreign-clients could not be installed. Their tests will fail.\n");
  }
}
