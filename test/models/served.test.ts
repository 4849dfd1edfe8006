import assert from "node:assert/strict";
import { test } from "vitest";
import { createCatalogue } from "../../src/models/catalogue.ts";
import type { ServedVersion } from "../../src/models/port/entry.ts";
import type { CallRecord } from "../../src/models/port/model.ts";
import { complete } from "../../src/models/port/model.ts";
import { Served } from "../../src/models/served.ts";
import { startVendor, type WireKind } from "../helpers/vendors.ts";
import { call } from "./fake-model.ts";

const TIMEOUTS = { connectMs: 1_000, firstTokenMs: 5_000, betweenChunksMs: 5_000 };
const PRICE = { input: 10, output: 10, cached: 10 };

const KINDS: WireKind[] = ["openai", "responses", "anthropic", "google"];

test.each(KINDS)("records what %s says has answered", async (kind) => {
  const vendor = await startVendor(kind);
  const calls: CallRecord[] = [];
  const changes: [string, ServedVersion][] = [];
  const entry = { ...vendor.entry({}), model: "big", name: "first", price: PRICE };
  const small = { ...entry, model: "small", name: "second", price: { input: 1, output: 1, cached: 1 } };
  const catalogue = createCatalogue([entry, small], TIMEOUTS, {
    onCall: (record) => calls.push(record),
    onVersion: (model, served) => changes.push([model, served]),
  });
  try {
    const ask = async (version: string, streamed: boolean) => {
      vendor.reply({ text: ["a", "b"], version, usage: { input: 1_000_000, output: 0 } });
      await complete(catalogue.members[0]?.model ?? assert.fail(), call({ streamed }));
      return calls.at(-1);
    };
    for (const streamed of [true, false]) {
      const dated = await ask("big-2026-01-01", streamed);
      assert.deepEqual([dated?.version, dated?.usd], ["big-2026-01-01", 10]);
      // Another model of the same server answers, at its own price.
      const other = await ask("small-001", streamed);
      assert.deepEqual([other?.version, other?.usd], ["small-001", 1]);
      // The price of a model that the catalogue does not have is unknown, so that of the entry counts.
      assert.deepEqual([(await ask("tiny", streamed))?.usd, calls.at(-1)?.version], [10, "tiny"]);
    }
    assert.deepEqual(changes.slice(0, 3), [
      ["first", { version: "big-2026-01-01", isExpected: true }],
      ["first", { version: "small-001", isExpected: false }],
      ["first", { version: "tiny", isExpected: false }],
    ]);
    assert.deepEqual(catalogue.load()[0]?.served, { version: "tiny", isExpected: false });
    assert.equal(catalogue.load()[1]?.served, undefined);
    // A name that is none is not recorded.
    assert.equal((await ask(`${"x".repeat(200)}\n`, true))?.version, undefined);
  } finally {
    await catalogue.close();
    await vendor.close();
  }
});

test("expects the version that the catalogue names, and tells few unexpected ones apart", () => {
  const entry = { name: "m", vendor: "openai", model: "deployment-7", version: "gpt-4o", tier: "fast" } as const;
  const own = { ...entry, images: false, jsonSchema: true };
  const served = new Served([own]);
  served.note(own, "gpt-4o-2024-08-06");
  assert.deepEqual(served.last(own), { version: "gpt-4o-2024-08-06", isExpected: true });
  const seen = new Set<string>();
  for (let i = 0; i < 100; i++) {
    served.note(own, `invented-${i}`);
    seen.add(served.last(own)?.version ?? "");
  }
  assert.ok(seen.size <= 9 && seen.has("others"));
  assert.deepEqual(served.last(own), { version: "others", isExpected: false });
});
