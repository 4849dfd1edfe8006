import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "vitest";
import { draw, PICTURE, RUN } from "../../../tools/picture/draw.ts";

test("the committed picture shows the recorded run; npm run build:picture renews it", async () => {
  const run = JSON.parse(await readFile(RUN, "utf8"));
  assert.equal(await readFile(PICTURE, "utf8"), draw(run));
});

test("draws the length of each bar in proportion to the time of its step", async () => {
  const svg = draw(JSON.parse(await readFile(RUN, "utf8")));
  const widths = [...svg.matchAll(/<rect class="(?:fast|strong) .*?width="(\d+)"/g)].map(([, width]) => Number(width));
  const { steps, latency_ms: totalMs } = JSON.parse(await readFile(RUN, "utf8"));
  const expected = steps
    .filter(({ answer }: { answer?: string }) => answer !== undefined)
    .map(({ duration_ms: ms }: { duration_ms: number }) => (520 * ms) / totalMs);
  assert.equal(widths.length, 3);
  for (const [i, width] of widths.entries()) assert.ok(Math.abs(width - expected[i]) <= 1, `${width} ${expected[i]}`);
});
