import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "vitest";
import { Hosts, type Order } from "./hosts.ts";
import { programOf } from "./program.ts";

test("a process that is replaced still answers the orders of the services that it is to start", async ({
  onTestFinished,
}) => {
  const folder = await mkdtemp(join(tmpdir(), "chorus-output-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const hosts = new Hosts(1);
  onTestFinished(() => hosts.close());
  const program = await programOf();
  const urls = [hosts.urlFor("files", program), hosts.urlFor("files", program)];
  const [first = "", second = ""] = await Promise.all(urls);
  assert.notEqual(first, second);
  for (const url of [first, second]) {
    const send = async (order: Order["order"]) => {
      // The service ends at once, because its port is not a number.
      const body: Order = { order, output: join(folder, "output"), env: { PORT: "none" } };
      return (await fetch(url, { method: "POST", body: JSON.stringify(body) })).json();
    };
    assert.deepEqual(await send("start"), { code: 1 });
    assert.deepEqual(await send("end"), { code: 1 });
  }
});
