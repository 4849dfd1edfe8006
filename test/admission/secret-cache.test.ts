import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { test } from "vitest";
import { hashSecret } from "../../src/admission/secret.ts";
import { createSecretCache, hashName } from "../../src/admission/secret-cache.ts";
import type { Notifications } from "../../src/store/notifications.ts";

/** A cache over secrets that the test sets, at a time that it passes. */
function scripted(notifications?: Pick<Notifications, "period" | "listen">) {
  const state = {
    now: 1_000,
    valid: new Map<string, number>(),
    reads: 0,
    /** While it is set, look-ups wait. */
    gate: undefined as PromiseWithResolvers<void> | undefined,
  };
  const read = async (hashes: Buffer[]) => {
    state.reads += hashes.length;
    const found = new Map([...state.valid].map(([secret, expiresAt]) => [hashName(hashSecret(secret)), { expiresAt }]));
    await state.gate?.promise;
    return found;
  };
  const cache = createSecretCache(read, () => state.now, notifications as Notifications);
  return {
    state,
    cache,
    isValid: async (secret: string) => (await cache.find(secret)) !== undefined,
    /** @returns how many secrets the call looks up */
    async readsOf(call: () => unknown): Promise<number> {
      const before = state.reads;
      await call();
      return state.reads - before;
    },
  };
}

const FOR_EVER = Number.POSITIVE_INFINITY;

test("looks up a secret that is not too long to be one", async () => {
  const { cache, readsOf } = scripted();
  assert.equal(await readsOf(() => cache.find("x".repeat(512))), 1);
  for (const secret of ["x".repeat(513), "", undefined]) assert.equal(await readsOf(() => cache.find(secret)), 0);
});

test("uses a look-up for half a second, for valid and for unknown secrets", async () => {
  const { state, isValid, readsOf } = scripted();
  state.valid.set("a", FOR_EVER);
  for (const [secret, expected] of [
    ["a", true],
    ["unknown", false],
  ] as const) {
    assert.equal(await readsOf(async () => assert.equal(await isValid(secret), expected)), 1);
    state.now += 249;
    assert.equal(await readsOf(async () => assert.equal(await isValid(secret), expected)), 0);
    state.now += 251;
    assert.equal(await readsOf(() => isValid(secret)), 1);
  }
});

test("refuses a secret from its end on, also if the look-up is fresh", async () => {
  const { state, isValid } = scripted();
  state.valid.set("a", 1_100);
  state.now = 1_099;
  assert.equal(await isValid("a"), true);
  state.now = 1_100;
  assert.equal(await isValid("a"), false);
});

test("caches a secret that was revoked as an unknown one", async () => {
  const { state, isValid, readsOf } = scripted();
  state.valid.set("a", FOR_EVER);
  await isValid("a");
  state.valid.clear();
  state.now += 500;
  assert.equal(await isValid("a"), false);
  assert.equal(await readsOf(async () => assert.equal(await isValid("a"), false)), 0);
});

test("does not cache what was read before a secret was forgotten, and looks it up again", async () => {
  const { state, cache, isValid, readsOf } = scripted();
  state.valid.set("a", FOR_EVER);
  state.gate = Promise.withResolvers();
  const first = isValid("a");
  await Promise.resolve();
  state.valid.clear();
  cache.forget(hashSecret("a"));
  const second = isValid("a");
  state.gate.resolve();
  assert.deepEqual([await first, await second], [true, false]);
  assert.equal(await readsOf(async () => assert.equal(await isValid("a"), false)), 0);
});

test("does not cache what was read before a secret was forgotten, also if nobody asks again meanwhile", async () => {
  const { state, cache, isValid, readsOf } = scripted();
  state.valid.set("a", FOR_EVER);
  state.gate = Promise.withResolvers();
  const first = isValid("a");
  await Promise.resolve();
  cache.forget(hashSecret("a"));
  state.gate.resolve();
  assert.equal(await first, true);
  state.valid.clear();
  assert.equal(await readsOf(async () => assert.equal(await isValid("a"), false)), 1);
});

test("shares a look-up between calls at the same time", async () => {
  const { isValid, readsOf } = scripted();
  assert.equal(await readsOf(() => Promise.all([isValid("a"), isValid("a")])), 1);
});

test("looks a used secret up again in the background after a quarter of a second, and ignores a failure", async () => {
  const { state, isValid, readsOf } = scripted();
  state.valid.set("a", FOR_EVER);
  await isValid("a");
  state.now += 250;
  state.gate = Promise.withResolvers();
  assert.equal(await readsOf(async () => assert.equal(await isValid("a"), true)), 1);
  state.gate.reject(new Error("the database is away"));
  await new Promise(setImmediate);
  assert.equal(await isValid("a"), true);
});

test("looks a secret up again after the clock was set back", async () => {
  const { state, isValid, readsOf } = scripted();
  await isValid("a");
  state.now -= 1;
  assert.equal(await readsOf(() => isValid("a")), 1);
});

test("remembers the 10,000 unknown secrets that were looked up last", async () => {
  const { state, cache, readsOf } = scripted();
  const names = Array.from({ length: 10_000 }, (_, i) => `unknown ${i}`);
  const [first = "", second = ""] = names;
  await Promise.all(names.map((name) => cache.find(name)));
  assert.equal(await readsOf(() => cache.find(first)), 0);
  state.now += 500;
  await cache.find(first);
  state.now -= 500;
  // One more replaces the one whose look-up is the oldest.
  await cache.find("one more");
  assert.equal(await readsOf(() => cache.find(names.at(-1))), 0);
  assert.equal(await readsOf(() => cache.find(second)), 1);
  state.now += 500;
  assert.equal(await readsOf(() => cache.find(first)), 0);
});

test("looks a valid secret up less often while each change of it is heard, and forgets it when one comes", async () => {
  let hear = (_: string): void => undefined;
  const channels: string[] = [];
  const notifications = {
    period: 1 as number | undefined,
    listen(channel: string, on: (message: string) => void) {
      channels.push(channel);
      hear = on;
    },
  };
  const { state, isValid, readsOf } = scripted(notifications as never);
  state.valid.set("a", FOR_EVER);
  await isValid("a");
  state.now += 29_999;
  assert.equal(await readsOf(() => isValid("a")), 0);
  hear(hashSecret("a").toString("hex"));
  assert.equal(await readsOf(() => isValid("a")), 1);
  state.now += 500;
  // Messages may have been lost since then.
  notifications.period = 2;
  assert.equal(await readsOf(() => isValid("a")), 1);
  state.now += 500;
  notifications.period = undefined;
  assert.equal(await readsOf(() => isValid("a")), 1);
  // The channel is the one that the database notifies.
  const texts = globSync("src/store/**/*.sql").map((path) => readFileSync(path, "utf8"));
  assert.ok(texts.some((text) => text.includes(`pg_notify('${channels[0]}'`)));
});
