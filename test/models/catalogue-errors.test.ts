import assert from "node:assert/strict";
import { test } from "vitest";
import { createCatalogue } from "../../src/models/catalogue.ts";
import type { CallRecord } from "../../src/models/port/model.ts";
import { type Completion, complete } from "../../src/models/port/model.ts";
import { createInternalErrors } from "../../src/telemetry/internal-errors.ts";
import { startVendor } from "../helpers/vendors.ts";
import { call, tierOf } from "./fake-model.ts";

const TIMEOUTS = { connectMs: 500, firstTokenMs: 800, betweenChunksMs: 800 };

test("a callback that throws does not fail the call, and keeps what the call used", async (t) => {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const errors = createInternalErrors();
  const fail = () => {
    throw new Error("x");
  };
  const catalogue = createCatalogue([vendor.entry({ name: "o" })], TIMEOUTS, { onCall: fail, errors });
  t.onTestFinished(() => catalogue.close());
  const used: CallRecord[] = [];
  const ask = (streamed: boolean, onUsed: (record: CallRecord) => void): Promise<Completion> =>
    complete(tierOf(catalogue, "fast"), call({ streamed, onUsed }));
  for (const streamed of [false, true]) {
    assert.equal((await ask(streamed, (record) => used.push(record))).text, "Hello from openai.");
    assert.equal((await ask(streamed, fail)).text, "Hello from openai.");
  }
  assert.deepEqual(
    used.map(({ model, outcome }) => [model, outcome]),
    [
      ["o", "ok"],
      ["o", "ok"],
    ],
  );
  assert.equal(errors.counts.model_call, 4);

  vendor.reply({ status: 500 });
  assert.equal((await ask(true, fail)).text, "Hello from openai.", "a retry");
  assert.equal(errors.counts.model_call, 6);
});
