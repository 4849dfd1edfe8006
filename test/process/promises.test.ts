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

test(`makes at most ${BUDGET} promises for a unary request of a busy service`, async (t) => {
  const vendor = await startVendor("openai", () => ({ text: "Oslo has its name back." }));
  t.onTestFinished(() => vendor.close());
  const service = await startOwnService(t, {
    env: {
      OPENAI_API_KEY: "key",
      OPENAI_BASE_URL: vendor.url,
      NODE_OPTIONS: `${CHILD_ENV.NODE_OPTIONS} --import ${COUNTER}`,
    },
  });
  const ask = async (requests: number) => {
    let left = requests;
    const sender = async () => {
      while (left-- > 0) {
        const response = await service.post("/v1/generate", {
          prompt: "What is the capital of Norway?",
          effort: "low",
        });
        assert.equal(response.status, 200, await response.text());
      }
    };
    await Promise.all(Array.from({ length: 64 }, sender));
  };
  const made = async () => {
    const printed = () => [...service.output().matchAll(/^(\d+) promises$/gm)];
    const before = printed().length;
    service.process.kill("SIGUSR2");
    await until(() => printed().length > before);
    return Number(printed().at(-1)?.[1]);
  };
  await ask(200);
  const before = await made();
  await ask(600);
  const each = ((await made()) - before) / 600;
  assert.ok(each > 20 && each <= BUDGET, `${each} promises a request`);
});
