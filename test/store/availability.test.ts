import assert from "node:assert/strict";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createAvailability } from "../../src/store/availability.ts";
import { until } from "../helpers/until.ts";

/** A closed gate asks every 250 ms. */
const LONGER_THAN_A_ROUND_MS = 300;

test("fails checks while the server does not answer, and runs one probe at a time", async () => {
  let asked = 0;
  let answered = 0;
  let there = true;
  const availability = createAvailability(async () => {
    asked++;
    await setImmediate();
    answered++;
    if (!there) throw new Error("away");
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
  await until(() => answered === 1);
  availability.check();
  assert.equal(asked, 1);

  there = false;
  availability.reportFailure();
  availability.check();
  await until(isClosed);
  availability.reportFailure();
  assert.equal(asked, 2);
  await until(() => asked >= 3);
  assert.throws(() => availability.check(), /away/);
  there = true;
  await until(() => !isClosed());
  const last = asked;
  await sleep(LONGER_THAN_A_ROUND_MS);
  assert.equal(asked, last);
  availability.close();
});

test("once ended it asks no more", async () => {
  let asked = 0;
  const availability = createAvailability(async () => {
    asked++;
    throw new Error("away");
  });
  availability.reportFailure();
  await until(() => asked === 1);
  availability.close();
  await sleep(LONGER_THAN_A_ROUND_MS);
  assert.equal(asked, 1);
  availability.reportFailure();
  assert.equal(asked, 1);
});
