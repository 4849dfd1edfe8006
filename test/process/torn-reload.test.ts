import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "vitest";
import type { Settings } from "../../src/config/settings.ts";
import { startReloading } from "../../src/process/reload.ts";
import { makeFolder } from "../helpers/books.ts";
import { until } from "../helpers/until.ts";

test.for([
  ["by itself", false],
  ["on request", true],
] as const)("never mixes files that change while they are read, %s", async ([, isRequested], t) => {
  const folder = await makeFolder(t);
  const [catalogue, rates] = [join(folder, "models.json"), join(folder, "rates.json")];
  const write = (figure: string) => {
    writeFileSync(catalogue, figure);
    writeFileSync(rates, figure);
  };
  const settings = (path: string, figure: string): Settings => ({
    catalogue: path,
    models: [],
    search: undefined,
    rates: { input: Number(figure), cached: 0, output: 0 },
    tiers: [],
  });
  write("1");
  const files = new Set<string>();
  const applied: [catalogue: string | undefined, rate: number][] = [];
  const changes = ["22", "333"];
  const reloading = startReloading({
    reader: {
      files,
      read() {
        files.add(catalogue).add(rates);
        const first = readFileSync(catalogue, "utf8");
        const change = changes.shift();
        if (change) write(change);
        return settings(first, readFileSync(rates, "utf8"));
      },
    },
    settings: settings("1", "1"),
    apply: async (next) => void applied.push([next.catalogue, next.rates.input]),
    refused: async () => undefined,
    log: { info() {}, warn() {}, error() {} } as never,
  });
  t.onTestFinished(() => reloading.stop());
  if (isRequested) reloading.request();
  await until(() => applied.length > 0);
  assert.deepEqual(applied, [["333", 333]]);
});
