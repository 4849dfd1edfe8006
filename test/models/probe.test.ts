import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "vitest";
import { createCatalogue } from "../../src/models/catalogue.ts";
import type { ModelEntry } from "../../src/models/port/entry.ts";
import type { Lifetime } from "../helpers/lifetime.ts";
import { until } from "../helpers/until.ts";

const TIMEOUTS = { connectMs: 5_000, firstTokenMs: 5_000, betweenChunksMs: 5_000 };
const NEVER = new AbortController().signal;

/** The catalogue of thirty models of a server. */
async function open(t: Lifetime, vendor: ModelEntry["vendor"], listener: RequestListener) {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const shared = { vendor, tier: "fast", baseUrl, apiKey: "some-key", images: false, jsonSchema: true } as const;
  const entries = Array.from({ length: 30 }, (_, i) => ({ ...shared, name: `m${i}`, model: `model-${i}` }));
  const catalogue = createCatalogue(entries, TIMEOUTS);
  t.onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await catalogue.close();
  });
  return catalogue;
}

test("asks a server for the list of its models once, and names all models that it refuses", async (t) => {
  const paths: (string | undefined)[] = [];
  const catalogue = await open(t, "openai-compatible", ({ url }, response) => {
    paths.push(url);
    response.writeHead(401, { "content-type": "application/json" }).end('{"error":{"code":"invalid_api_key"}}');
  });
  const found = await catalogue.probe(NEVER, { onlyRefused: false });
  assert.deepEqual(paths, ["/v1/models"]);
  assert.deepEqual(
    found.map(({ entry, failure }) => [entry.name, failure.status]),
    Array.from({ length: 30 }, (_, i) => [`m${i}`, 401]),
  );
  assert.deepEqual([catalogue.isRefused(), catalogue.mayBeMended()], [true, true]);
});

test("probes eight models at a time, and keeps what it knows of those whose vendor does not answer", async (t) => {
  let refuses = true;
  let waiting = 0;
  const catalogue = await open(t, "openai", (_, response) => {
    if (refuses) response.writeHead(401).end();
    else waiting += 1;
  });
  await catalogue.probe(NEVER, { onlyRefused: false });
  assert.equal(catalogue.isRefused(), true);

  refuses = false;
  const stopping = new AbortController();
  const probing = catalogue.probe(stopping.signal, { onlyRefused: true });
  await until(() => waiting === 8);
  stopping.abort();
  assert.deepEqual([await probing, waiting, catalogue.isRefused()], [[], 8, true]);
});
