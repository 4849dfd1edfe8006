import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createAvailability } from "../../src/store/availability.ts";

test("fails checks while the server does not answer, and runs one probe at a time", async () => {
  let probes = 0;
  let isUp = true;
  const availability = createAvailability(async () => {
    probes++;
    await sleep(5);
    if (!isUp) throw new Error("away");
  });
  availability.reportFailure();
  availability.reportFailure();
  availability.check();
  await sleep(20);
  availability.check();
  assert.equal(probes, 1);

  isUp = false;
  availability.reportFailure();
  availability.check();
  await sleep(20);
  assert.throws(() => availability.check(), /away/);
  availability.reportFailure();
  assert.equal(probes, 2);
  await sleep(260);
  assert.throws(() => availability.check(), /away/);
  assert.ok(probes >= 3);
  isUp = true;
  await sleep(300);
  availability.check();
  const until = probes;
  await sleep(300);
  assert.equal(probes, until);
  availability.close();
});

test("runs no probe after it was closed", async () => {
  let probes = 0;
  const availability = createAvailability(async () => {
    probes++;
    throw new Error("away");
  });
  availability.reportFailure();
  await sleep(10);
  availability.close();
  await sleep(300);
  assert.equal(probes, 1);
  availability.reportFailure();
  assert.equal(probes, 1);
});
