import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "vitest";
import { createAvailability } from "../../src/store/availability.ts";

test("the gate closes when the server does not answer, and opens when it does; it asks once at a time", async () => {
  let asked = 0;
  let there = true;
  const gate = createAvailability(async () => {
    asked++;
    await sleep(5);
    if (!there) throw new Error("away");
  });
  gate.suspect();
  gate.suspect();
  gate.pass();
  await sleep(20);
  gate.pass();
  assert.equal(asked, 1);

  there = false;
  gate.suspect();
  gate.pass();
  await sleep(20);
  assert.throws(() => gate.pass(), /away/);
  gate.suspect();
  assert.equal(asked, 2);
  await sleep(260);
  assert.throws(() => gate.pass(), /away/);
  assert.ok(asked >= 3);
  there = true;
  await sleep(300);
  gate.pass();
  const until = asked;
  await sleep(300);
  assert.equal(asked, until);
  gate.end();
});

test("once ended it asks no more", async () => {
  let asked = 0;
  const gate = createAvailability(async () => {
    asked++;
    throw new Error("away");
  });
  gate.suspect();
  await sleep(10);
  gate.end();
  await sleep(300);
  assert.equal(asked, 1);
  gate.suspect();
  assert.equal(asked, 1);
});
