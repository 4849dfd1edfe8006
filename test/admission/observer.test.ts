import assert from "node:assert/strict";
import { mock } from "node:test";
import { test } from "vitest";
import { createObserver } from "../../src/admission/observer.ts";
import type { Pool } from "../../src/store/pool.ts";
import type { Lifetime } from "../helpers/lifetime.ts";

/** An observer of replicas whose last heartbeats the test sets, at times that it sets. */
function observe(t: Lifetime) {
  const state = { now: 0, beats: {} as Record<string, number>, claims: [] as string[], statements: [] as string[] };
  const { mock: now } = mock.method(performance, "now", () => state.now);
  t.onTestFinished(() => now.restore());
  const query = async (text: string, [ids]: readonly unknown[]) => {
    state.statements.push(`${text.trim().split(" ")[0]} ${ids}`);
    if (text.startsWith("select"))
      return Object.entries(state.beats).map(([id, beat]) => ({ id, beat_at: new Date(beat) }));
    if (text.startsWith("update")) state.claims.push(...(ids as string[]));
    return text.startsWith("update") ? (ids as string[]).map((id) => ({ id })) : [];
  };
  return { state, observer: createObserver({ query } as unknown as Pool, "me") };
}

test("a replica is dead when the same heartbeat was its last one for ten seconds", async (t) => {
  const { state, observer } = observe(t);
  state.beats = { a: 1, b: 1 };
  assert.deepEqual(await observer.dead(), []);
  state.now = 9_999;
  assert.deepEqual(await observer.dead(), []);
  // This one has sent another heartbeat.
  state.beats = { a: 1, b: 2 };
  state.now = 10_000;
  assert.deepEqual(await observer.dead(), ["a"]);
  state.now = 19_999;
  assert.deepEqual(await observer.dead(), ["a"]);
  state.now = 20_000;
  assert.deepEqual(await observer.dead(), ["a", "b"]);
  assert.deepEqual(state.claims, ["a", "a", "a", "b"]);
});

test("the observation of a replica starts again after an outage, and when it was not quiet meanwhile", async (t) => {
  const { state, observer } = observe(t);
  state.beats = { a: 1, b: 1 };
  await observer.dead();
  observer.reset();
  state.now = 9_000;
  state.beats = { a: 1 };
  assert.deepEqual(await observer.dead(), []);
  state.now = 10_000;
  state.beats = { a: 1, b: 1 };
  assert.deepEqual(await observer.dead(), []);
  state.now = 19_000;
  assert.deepEqual(await observer.dead(), ["a"]);
});

test("leaves itself out, claims nothing while nobody is dead, and forgets only whom it is told to", async (t) => {
  const { state, observer } = observe(t);
  state.beats = { a: 1, b: 1 };
  await observer.dead();
  await observer.forget([]);
  state.now = 10_000;
  await observer.dead();
  await observer.forget(["a"]);
  assert.deepEqual(state.statements, ["select me", "select me", "update a,b", "delete a"]);
});
