import assert from "node:assert/strict";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createAvailability } from "../../src/store/availability.ts";
import { until } from "../helpers/until.ts";

/** Longer than the at most 375 ms between two probes. */
const LONGER_THAN_AN_INTERVAL_MS = 450;

test("fails checks while the server does not answer, and runs one probe at a time", async () => {
  let probes = 0;
  let results = 0;
  let reachable = true;
  const availability = createAvailability(async () => {
    probes++;
    await setImmediate();
    results++;
    if (!reachable) throw new Error("away");
  });
  const isClosed = () => {
    try {
      availability.check();
      return false;
    } catch (error) {
      assert.match(String(error), /away/);
      return true;
    }
  };
  availability.reportFailure();
  availability.reportFailure();
  availability.check();
  await until(() => results === 1);
  availability.check();
  assert.equal(probes, 1);

  reachable = false;
  availability.reportFailure();
  availability.check();
  await until(isClosed);
  availability.reportFailure();
  assert.equal(probes, 2);
  await until(() => probes >= 3);
  assert.throws(() => availability.check(), /away/);
  reachable = true;
  await until(() => !isClosed());
  const last = probes;
  await sleep(LONGER_THAN_AN_INTERVAL_MS);
  assert.equal(probes, last);
  availability.close();
});

test("accepts statements when one of them gets an answer while a probe fails", async () => {
  const probe = Promise.withResolvers<void>();
  let probes = 0;
  const availability = createAvailability(() => {
    probes++;
    return probe.promise;
  });
  availability.reportFailure();
  await until(() => probes === 1);
  availability.reportAnswer();
  probe.reject(new Error("too slow"));
  await setImmediate();
  availability.check();
  await sleep(LONGER_THAN_AN_INTERVAL_MS);
  availability.check();
  assert.equal(probes, 1);
  availability.close();
});

test("sends no probe after it is closed", async () => {
  let probes = 0;
  const availability = createAvailability(async () => {
    probes++;
    throw new Error("away");
  });
  availability.reportFailure();
  await until(() => probes === 1);
  availability.close();
  await sleep(LONGER_THAN_AN_INTERVAL_MS);
  assert.equal(probes, 1);
  availability.reportFailure();
  assert.equal(probes, 1);
});
