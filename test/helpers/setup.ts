import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { CliThreads } from "./cli-threads.ts";
import { openTestServer, type TestServer } from "./database.ts";
import { type Action, RUN_VARIABLE } from "./run.ts";

/** Clients of OpenAI's API that others wrote. They are packages apart, because only their tests need them. */
const FOREIGN_CLIENTS = resolve(import.meta.dirname, "../foreign-clients");

/**
 * Runs once before all test files, in the main process of vitest. Installs packages that only tests need. Starts an
 * HTTP server, at which test files ask for what they share: one Postgres, where each test has databases of its own, and
 * the loaded command line. Each starts at the first request. The processes of the test files inherit the address.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  installForeignClients();
  let server: Promise<TestServer> | undefined;
  const threads = new CliThreads();
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
    await (await server)?.close();
  };
}

/** Without a network only the tests of these clients fail. */
function installForeignClients(): void {
  try {
    execFileSync(process.execPath, ["../../tools/setup.cjs"], { cwd: FOREIGN_CLIENTS, stdio: "inherit" });
  } catch {
    process.stderr.write("The packages of test/foreign-clients could not be installed. Their tests will fail.\n");
  }
}
