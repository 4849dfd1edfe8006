import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "vitest";
import { CHILD_ENV } from "../helpers/environment.ts";
import { startOwnService } from "../helpers/service.ts";
import { until } from "../helpers/until.ts";
import { startVendor } from "../helpers/vendors.ts";

const COUNTER = resolve(import.meta.dirname, "../helpers/count-work.ts");

/**
 * Most promises of a unary request, most KB that it allocates while V8 has not compiled its code yet, and most calls of
 * the operating system that read or write: one of each for the caller and for the vendor, and a part of a settlement's.
 * docs/decisions/speed.md says how many there are.
 */
const BUDGET = { promises: 55, kilobytes: 145, readsAndWrites: 5 };

/** Requests at a time. Their settlements share statements, as those of a busy service do. */
const WAVE = 64;
const WAVES = 10;

test("a unary request of a busy service makes few promises and allocates little", async (t) => {
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
  const read = async () => {
    const printed = () => [...service.output().matchAll(/^(\d+) promises, (\d+) bytes$/gm)];
    const before = printed().length;
    service.process.kill("SIGUSR2");
    await until(() => printed().length > before);
    const [, promises, bytes] = printed().at(-1) ?? [];
    return { promises: Number(promises), bytes: Number(bytes), readsAndWrites: readsAndWrites(service.process.pid) };
  };
  const counts: (typeof BUDGET)[] = [];
  for (let i = 0; i < WAVES; i++) {
    wave = Promise.withResolvers();
    const before = await read();
    await Promise.all(Array.from({ length: WAVE }, ask));
    const after = await read();
    counts.push({
      promises: (after.promises - before.promises) / WAVE,
      kilobytes: (after.bytes - before.bytes) / WAVE / 1_000,
      readsAndWrites: (after.readsAndWrites - before.readsAndWrites) / WAVE,
    });
  }
  // The others have promises of the start, and of what the service does each second.
  for (const [name, budget] of Object.entries(BUDGET)) {
    const least = Math.min(...counts.map((count) => count[name as keyof typeof BUDGET]));
    assert.ok(least > budget / 3 && least <= budget, `${least} ${name} a request; ${JSON.stringify(counts)}`);
  }
});

/** Calls of read, write and their kin by the main thread of a process, on files and sockets. */
function readsAndWrites(pid: number | undefined): number {
  const text = readFileSync(`/proc/${pid}/task/${pid}/io`, "utf8");
  return [...text.matchAll(/^sysc[rw]: (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
}
