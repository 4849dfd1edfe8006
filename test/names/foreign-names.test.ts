import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { test } from "vitest";
import { createForeignNames } from "../../src/names/foreign-names.ts";
import { startNameServer } from "../helpers/name-server.ts";
import { until } from "../helpers/until.ts";

test("asks the given name servers for both families", async (t) => {
  const addresses = ["192.0.2.7", "192.0.2.8"];
  const server = await startNameServer(t, (name) => (name === "hook.example" ? { addresses } : {}));
  const resolve = createForeignNames([server.address]);
  const found = await resolve("Hook.Example.");
  assert.deepEqual(found.map(({ address }) => address).sort(), addresses);
  assert.deepEqual(server.asked, ["hook.example", "hook.example"]);
  await assert.rejects(resolve("other.example"), { code: "ENOTFOUND" });
});

test("knows localhost and the names of /etc/hosts without a name server", async (t) => {
  const server = await startNameServer(t, () => ({ addresses: ["192.0.2.7"] }));
  const resolve = createForeignNames([server.address]);
  for (const name of ["localhost", "LOCALHOST.", "a.localhost"]) {
    for (const { address } of await resolve(name)) assert.match(address, /^(127\.0\.0\.1|::1)$/);
  }
  const lines = (await readFile("/etc/hosts", "utf8")).split("\n").map((line) => line.replace(/#.*/, "").trim());
  const [address = "", name = ""] = lines.at(-1)?.split(/\s+/) ?? [];
  if (isIP(address) !== 0) assert.ok((await resolve(name)).some((one) => one.address === address));
  assert.deepEqual(server.asked, []);
});

test("names that are not answered hold no thread, and end with ETIMEOUT", async (t) => {
  const server = await startNameServer(t, () => ({ afterMs: Infinity }));
  const resolve = createForeignNames([server.address]);
  const slow = Array.from({ length: 20 }, (_, i) => resolve(`slow-${i}.example`));
  const ends = Promise.all(
    slow.map((one) =>
      one.then(
        () => assert.fail("it was found"),
        ({ code }: NodeJS.ErrnoException) => code,
      ),
    ),
  );
  await until(() => server.asked.length >= 40);
  // What `getaddrinfo` does in a thread.
  assert.ok(!process.getActiveResourcesInfo().includes("GetAddrInfoReqWrap"));
  assert.deepEqual([...new Set(await ends)], ["ETIMEOUT"]);
});
