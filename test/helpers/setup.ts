import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { openTestServer, SERVER_VARIABLE, type TestServer } from "./database.ts";

/** Clients of OpenAI's API that others wrote. They are packages apart, because only their tests need them. */
const FOREIGN_CLIENTS = resolve(import.meta.dirname, "../foreign-clients");

/**
 * Runs once before all test files, in the main process of vitest. Installs packages that only tests need. Starts an
 * HTTP server, which creates and drops the databases of tests. It starts one Postgres for the whole run at the first
 * request, so tests without a database do not wait for it. The processes of the test files inherit its address.
 */
export default async function setUp(): Promise<() => Promise<void>> {
  installForeignClients();
  let server: Promise<TestServer> | undefined;
  const starter = createServer(async (request, response) => {
    try {
      server ??= openTestServer();
      const { create, drop } = await server;
      if (request.url === "/create") response.end(await create());
      else response.end(await drop(await text(request)));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  starter.listen(0, "127.0.0.1");
  await once(starter, "listening");
  process.env[SERVER_VARIABLE] = `http://127.0.0.1:${(starter.address() as AddressInfo).port}`;
  return async () => {
    starter.closeAllConnections();
    starter.close();
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
