import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { test } from "vitest";
import { ConfigError, envToConfig } from "../../src/config/config.ts";
import { LIMIT_NAMES, MAX_LIMIT, parseTiers } from "../../src/config/tiers.ts";

test("has default tiers whose limits increase and which parse again from their JSON", () => {
  const tiers = parseTiers(undefined);
  assert.deepEqual(
    tiers.map(({ name }) => name),
    ["free", "1", "2", "3", "4", "unlimited"],
  );
  assert.deepEqual(parseTiers(JSON.stringify(tiers)), tiers);
  assert.equal(parseTiers(""), tiers);
  for (const name of LIMIT_NAMES) {
    const figures = tiers.map(({ limits }) => limits[name] ?? Number.POSITIVE_INFINITY);
    assert.deepEqual(
      figures,
      figures.toSorted((a, b) => a - b),
      name,
    );
  }
  // The largest prompt has 200,000 characters and at most as many tokens. It must fit into a minute.
  assert.ok((tiers[0]?.limits.input_tokens_per_minute ?? 0) >= 200_000);
});

test("has the default tiers that docs/configuration.md lists", () => {
  const doc = readFileSync(resolve(import.meta.dirname, "../../docs/configuration.md"), "utf8");
  const [, table = ""] = /^\| tier \| purchased .*\n\| --- .*\n((?:\|.*\n)+)/m.exec(doc) ?? [];
  const documented = table
    .trim()
    .split("\n")
    .map((line) =>
      line
        .split("|")
        .flatMap((cell) => cell.trim().split(/, | \/ /))
        .filter((cell) => cell !== ""),
    );
  const figure = (of: number | undefined) => of?.toLocaleString("en") ?? "–";
  const coded = parseTiers(undefined).map(({ name, purchased, limits }) => [
    `\`${name}\``,
    purchased === undefined ? "by an operator" : figure(purchased),
    ...(["requests_per_minute", "requests_per_day", "requests_per_month"] as const).map((limit) =>
      figure(limits[limit]),
    ),
    ...(["input_tokens_per_minute", "output_tokens_per_minute"] as const).map((limit) => figure(limits[limit])),
    figure(limits.concurrent_requests),
  ]);
  assert.deepEqual(documented, coded);
});

test("replaces the default tiers with configured ones; a missing limit is no limit, zero is one", () => {
  const own = [
    { name: "start", purchased: 0, limits: { requests_per_minute: 0, input_tokens_per_month: MAX_LIMIT } },
    { name: "friends", limits: {} },
    { name: "big", purchased: 0.000001, limits: {} },
  ];
  assert.deepEqual(envToConfig({ CHORUS_TIERS: JSON.stringify(own) }).tiers, own);
});

test("names the place of each error in CHORUS_TIERS", () => {
  const free = { name: "free", purchased: 0, limits: {} };
  const wrong: [unknown, RegExp][] = [
    ["{", /^CHORUS_TIERS must be a JSON list/],
    [{}, /^CHORUS_TIERS must be a JSON list/],
    [[], /^CHORUS_TIERS must be a JSON list/],
    [[null], /^CHORUS_TIERS\[0\] must be a JSON object/],
    [[{ ...free, price: 1 }], /^CHORUS_TIERS\[0\] has an unknown member "price"/],
    [[{ purchased: 0, limits: {} }], /^CHORUS_TIERS\[0\]\.name/],
    [[{ ...free, name: "auto" }], /^CHORUS_TIERS\[0\]\.name/],
    [[{ ...free, name: "a\u001b[2J" }], /^CHORUS_TIERS\[0\]\.name/],
    [[free, { ...free, purchased: 1 }], /^CHORUS_TIERS\[1\]\.name repeats the name "free"/],
    [[free, { name: "b", purchased: -1, limits: {} }], /^CHORUS_TIERS\[1\]\.purchased/],
    [[free, { name: "b", purchased: 0.0000001, limits: {} }], /^CHORUS_TIERS\[1\]\.purchased/],
    [[free, { name: "b", purchased: 1e10, limits: {} }], /^CHORUS_TIERS\[1\]\.purchased/],
    [[free, { name: "b", purchased: "5", limits: {} }], /^CHORUS_TIERS\[1\]\.purchased/],
    [[free, { name: "b", purchased: 0, limits: {} }], /^CHORUS_TIERS\[1\]\.purchased must be greater/],
    [[{ name: "b", purchased: 1, limits: {} }], /^CHORUS_TIERS must have a tier with "purchased": 0/],
    [[{ name: "b", limits: {} }], /^CHORUS_TIERS must have a tier with "purchased": 0/],
    [[{ name: "b", purchased: 0 }], /^CHORUS_TIERS\[0\]\.limits must be a JSON object/],
    [
      [{ ...free, limits: { requests_per_week: 1 } }],
      /^CHORUS_TIERS\[0\]\.limits has an unknown member "requests_per_week"/,
    ],
    [[{ ...free, limits: { requests_per_day: -1 } }], /^CHORUS_TIERS\[0\]\.limits\.requests_per_day/],
    [[{ ...free, limits: { requests_per_day: 1.5 } }], /^CHORUS_TIERS\[0\]\.limits\.requests_per_day/],
    [[{ ...free, limits: { requests_per_day: null } }], /^CHORUS_TIERS\[0\]\.limits\.requests_per_day/],
    [[{ ...free, limits: { requests_per_day: MAX_LIMIT + 1 } }], /^CHORUS_TIERS\[0\]\.limits\.requests_per_day/],
  ];
  for (const [value, message] of wrong) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    assert.throws(
      () => envToConfig({ CHORUS_TIERS: text }),
      (error: Error) => error instanceof ConfigError && message.test(error.message),
      text,
    );
  }
});
