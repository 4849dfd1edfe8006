import assert from "node:assert/strict";
import type { LookupAddress } from "node:dns";
import { test } from "vitest";
import { createCatalogue } from "../../src/models/catalogue.ts";
import { complete } from "../../src/models/port/model.ts";
import { createOwnNames } from "../../src/names/own-names.ts";
import { lookupWith, nameError } from "../../src/names/resolve.ts";
import { createSearch } from "../../src/search/search.ts";
import { startSearchServer } from "../helpers/search-servers.ts";
import { startVendor } from "../helpers/vendors.ts";
import { call, tierOf } from "../models/fake-model.ts";

const [FIRST, SECOND] = ["192.0.2.1", "192.0.2.2"].map((address) => [{ address, family: 4 }]);
const FOUND: readonly LookupAddress[] = FIRST ?? [];

/** Names over look-ups that the test ends one by one, and a clock that the test moves. */
function controlled() {
  const state = { now: 0 };
  const lookUps: (PromiseWithResolvers<readonly LookupAddress[]> & { host: string })[] = [];
  const names = createOwnNames(
    (host) => {
      const lookUp = { ...Promise.withResolvers<readonly LookupAddress[]>(), host };
      lookUps.push(lookUp);
      return lookUp.promise;
    },
    () => state.now,
  );
  return { names, lookUps, state };
}

/** The same after a look-up of `a.example` at the time 0. */
async function known() {
  const all = controlled();
  const found = all.names.resolve("a.example");
  all.lookUps[0]?.resolve(FOUND);
  assert.deepEqual(await found, FIRST);
  return all;
}

test("looks a name up once for all connections at the same time, and uses the addresses for ten seconds", async () => {
  const { names, lookUps, state } = controlled();
  const all = [1, 2, 3].map(() => names.resolve("a.example"));
  assert.equal(lookUps.length, 1);
  lookUps[0]?.resolve(FOUND);
  for (const one of all) assert.deepEqual(await one, FIRST);
  state.now = 4_000;
  assert.deepEqual(await names.resolve("a.example"), FIRST);
  assert.equal(lookUps.length, 1);
});

test("looks a name in use up ahead, and no connection waits for that", async () => {
  const { names, lookUps, state } = await known();
  state.now = 6_000;
  assert.deepEqual(await names.resolve("a.example"), FIRST);
  assert.equal(lookUps.length, 2);
  lookUps[1]?.resolve(SECOND ?? []);
  await lookUps[1]?.promise;
  // It is fresh from the second look-up on.
  state.now = 10_500;
  assert.deepEqual(await names.resolve("a.example"), SECOND);
  assert.equal(lookUps.length, 2);
});

test("waits for a look-up of a name that was not used for long", async () => {
  const { names, lookUps, state } = await known();
  state.now = 600_000;
  const found = names.resolve("a.example");
  lookUps[1]?.resolve(SECOND ?? []);
  assert.deepEqual(await found, SECOND);
});

test("uses the last addresses for an hour if look-ups fail, and asks again after some seconds", async () => {
  const { names, lookUps, state } = await known();
  state.now = 60_000;
  const found = names.resolve("a.example");
  lookUps[1]?.reject(nameError("EAI_AGAIN", "a.example"));
  assert.deepEqual(await found, FIRST);
  state.now = 61_000;
  assert.deepEqual(await names.resolve("a.example"), FIRST);
  assert.equal(lookUps.length, 2);
  state.now = 3_600_001;
  const late = names.resolve("a.example");
  lookUps[2]?.reject(nameError("EAI_AGAIN", "a.example"));
  await assert.rejects(late, { code: "EAI_AGAIN" });
});

test("uses the last addresses while a look-up hangs", async () => {
  const { names, lookUps, state } = await known();
  state.now = 60_000;
  // Waits in real time, because the look-up has just begun.
  assert.deepEqual(await names.resolve("a.example"), FIRST);
  state.now = 61_000;
  for (let i = 0; i < 100; i++) assert.deepEqual(await names.resolve("a.example"), FIRST);
  assert.equal(lookUps.length, 2);
});

test("tells the cause of a first look-up that fails, and asks again at the next", async () => {
  const { names, lookUps } = controlled();
  const failed = names.resolve("a.example");
  lookUps[0]?.reject(nameError("ENOTFOUND", "a.example"));
  await assert.rejects(failed, { code: "ENOTFOUND" });
  const found = names.resolve("a.example");
  lookUps[1]?.resolve(FOUND);
  assert.deepEqual(await found, FIRST);
});

test("keeps at most 256 names, and prepares names but not addresses", async () => {
  const { names, lookUps } = controlled();
  for (const address of ["127.0.0.1", "::1", "[::1]"]) names.prepare(address);
  for (let i = 0; i < 257; i++) names.prepare(`n${i}.example`);
  assert.equal(lookUps.length, 257);
  for (const lookUp of lookUps) lookUp.resolve(FOUND);
  assert.deepEqual(await names.resolve("n256.example"), FIRST);
  assert.equal(lookUps.length, 257);
  void names.resolve("n0.example");
  assert.equal(lookUps.at(-1)?.host, "n0.example");
  assert.equal(lookUps.length, 258);
});

test("resolves by the sources of this machine", async () => {
  const found = await createOwnNames().resolve("localhost");
  assert.ok(found.some(({ address }) => address === "127.0.0.1" || address === "::1"));
});

test("models and web search connect to the addresses that are known, with one look-up", async (t) => {
  const asked: string[] = [];
  const names = createOwnNames(async (host) => {
    asked.push(host);
    return [{ address: "127.0.0.1", family: 4 }];
  });
  const vendor = await startVendor("openai", { headers: { connection: "close" } });
  const backend = await startSearchServer("searxng");
  const byName = (url: string, host: string) => url.replace("127.0.0.1", host);
  const entry = vendor.entry({ baseUrl: byName(vendor.url, "vendor.invalid") });
  const timeouts = { connectMs: 5_000, firstTokenMs: 60_000, betweenChunksMs: 60_000 };
  const catalogue = createCatalogue([entry], timeouts, { names });
  const config = backend.config({ baseUrl: byName(backend.url, "search.invalid") });
  const search = createSearch(config, { lookup: lookupWith(names.resolve) }) ?? assert.fail();
  t.onTestFinished(async () => {
    await Promise.all([catalogue.close(), search.close()]);
    await Promise.all([vendor.close(), backend.close()]);
  });
  assert.deepEqual(asked, ["vendor.invalid"]);
  for (let i = 0; i < 3; i++) await complete(tierOf(catalogue, "fast"), call());
  assert.equal(vendor.calls.length, 3);
  await search.find("what is this?");
  assert.deepEqual([...new Set(asked)], ["vendor.invalid", "search.invalid"]);
});
