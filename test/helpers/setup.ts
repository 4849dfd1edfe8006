import { openTestServer, SERVER_VARIABLE, type TestServer } from "./database.ts";

let server: TestServer | undefined;

/** Runs once before all test files: one Postgres for them all. The processes of the test files inherit the variable. */
export async function globalSetup(): Promise<void> {
  server = await openTestServer();
  process.env[SERVER_VARIABLE] = JSON.stringify({ url: server.url, template: server.template });
}

export async function globalTeardown(): Promise<void> {
  await server?.close();
}
