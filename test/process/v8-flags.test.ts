import assert from "node:assert/strict";
import { resolve } from "node:path";
import { CHILD_ENV } from "../helpers/environment.ts";
import { test } from "../helpers/fixtures.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";

const TRACE_GC = resolve(import.meta.dirname, "../helpers/trace-gc.ts");

test("collects garbage without dropping code, and creates no object in the old generation", async ({ t }) => {
  const vendor = await startVendor("openai");
  t.onTestFinished(() => vendor.close());
  const service = await startOwnService(t, {
    env: { ...vendor.env, CHORUS_WARM_UP: "on", NODE_OPTIONS: `${CHILD_ENV.NODE_OPTIONS} --import ${TRACE_GC}` },
  });
  // V8 decides about the objects that were created before the service turned that off.
  const decisions = () => service.output().match(/ pretenuring: /g)?.length ?? 0;
  const atStart = decisions();
  for (let i = 0; i < 100; i++) assert.equal((await service.post("/v1/generate", { prompt: "a" })).status, 200);
  const collections = () => service.output().match(/^.*Mark-Compact.*$/gm) ?? [];
  const before = collections().length;
  await until(() => collections().length > before);
  // V8 marks those that also drop code as "(reduce)".
  assert.doesNotMatch(collections().join("\n"), /\(reduce\)/);
  assert.equal(decisions(), atStart);
});
