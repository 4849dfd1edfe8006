import assert from "node:assert/strict";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createAvailability } from "../../src/store/availability.ts";
import { until } from "../helpers/until.ts";

/** A closed gate asks every 250 ms. */
const LONGER_THAN_A_ROUND_MS = 300;

test("the gate closes when the server does not answer, and opens when it does; it asks once at a time", async () => {
  let asked = 0;
  let answered = 0;
  let there = true;
  const gate = createAvailability(async () => {
    asked++;
    await setImmediate();
    answered++;
    if (!there) throw new Error("away");
  });
  const isClosed = () => {
    try {
      gate.pass();
      return false;
    } catch (error) {
      assert.match(String(error), /away/);
      return true;
    }
  };
  gate.suspect();
  gate.suspect();
  gate.pass();
  await until(() => answered === 1);
  gate.pass();
  assert.equal(asked, 1);

  there = false;
  gate.suspect();
  gate.pass();
  await until(isClosed);
  gate.suspect();
  assert.equal(asked, 2);
  await until(() => asked >= 3);
  assert.throws(() => gate.pass(), /away/);
  there = true;
  await until(() => !isClosed());
  const last = asked;
  await sleep(LONGER_THAN_A_ROUND_MS);
  assert.equal(asked, last);
  gate.end();
});

test("once ended it asks no more", async () => {
  let asked = 0;
  const gate = createAvailability(async () => {
    asked++;
    throw new Error("away");
  });
  gate.suspect();
  await until(() => asked === 1);
  gate.end();
  await sleep(LONGER_THAN_A_ROUND_MS);
  assert.equal(asked, 1);
  gate.suspect();
  assert.equal(asked, 1);
});
