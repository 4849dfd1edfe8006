import assert from "node:assert/strict";
import { resolve } from "node:path";
import { test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";

const COUNTER = resolve(import.meta.dirname, "../helpers/count-promises.ts");

/** Most promises of a unary request. docs/decisions/speed.md says how many there are. */
const BUDGET = 55;

/** Requests at a time. Their settlements share statements, as those of a busy service do. */
const WAVE = 64;
const WAVES = 10;

test(`makes at most ${BUDGET} promises for a unary request of a busy service`, async (t) => {
  // The vendor answers all requests of a wave together, however slowly they come on a busy machine.
  let wave = Promise.withResolvers<void>();
  const vendor = await startVendor("openai", async () => {
    if (vendor.calls.length % WAVE === 0) wave.resolve();
    await wave.promise;
    return { text: "Oslo has its name back." };
  });
  t.onTestFinished(() => vendor.close());
  const service = await startOwnService(t, {
    env: {
      OPENAI_API_KEY: "key",
      OPENAI_BASE_URL: vendor.url,
      NODE_OPTIONS: `${CHILD_ENV.NODE_OPTIONS} --import ${COUNTER}`,
    },
  });
  const ask = async () => {
    const response = await service.post("/v1/generate", { prompt: "What is the capital of Norway?", effort: "low" });
    assert.equal(response.status, 200, await response.text());
  };
  const made = async () => {
    const printed = () => [...service.output().matchAll(/^(\d+) promises$/gm)];
    const before = printed().length;
    service.process.kill("SIGUSR2");
    await until(() => printed().length > before);
    return Number(printed().at(-1)?.[1]);
  };
  const counts: number[] = [];
  for (let i = 0; i < WAVES; i++) {
    wave = Promise.withResolvers();
    const before = await made();
    await Promise.all(Array.from({ length: WAVE }, ask));
    counts.push(((await made()) - before) / WAVE);
  }
  // The others have promises of the start, and of what the service does each second.
  const each = Math.min(...counts);
  assert.ok(each > 20 && each <= BUDGET, `${each} promises a request; ${counts.join(", ")}`);
});
