import assert from "node:assert/strict";
import { test } from "vitest";
import { startPanel } from "../helpers/panel.ts";
import { until } from "../helpers/until.ts";
import { firstAsked, grade, graded, scriptAnthropicRight } from "./grading.ts";

test("learns afresh when a vendor serves another version, on every replica and after a restart", async (t) => {
  const panel = await startPanel(t, { CHORUS_LEARNING: "outcomes" });
  const vendorOf = async (on = panel.service) => (await firstAsked(panel, on)).vendor;
  scriptAnthropicRight(panel, "claude-1");
  while ((await graded(panel)) < 30) await grade(panel);
  const replica = await panel.start();
  await until(async () => (await vendorOf()) === "anthropic");
  await until(async () => (await vendorOf(replica)) === "anthropic");

  scriptAnthropicRight(panel, "claude-2");
  // The first answer of the new version is on one replica only.
  assert.equal(await vendorOf(), "anthropic");
  for (const on of [panel.service, replica]) {
    await until(async () => (await vendorOf(on)) === "openai");
    assert.doesNotMatch((await firstAsked(panel, on)).trace, /learned/);
  }
  assert.equal(await panel.service.stop(), 0);
  const restarted = await panel.start();
  assert.equal(await vendorOf(restarted), "openai");

  // What is known of the earlier version holds again when it comes back.
  scriptAnthropicRight(panel, "claude-1");
  await panel.ask({ prompt: "Which city? (a) Lyon (b) Paris", effort: "medium" }, restarted);
  await until(async () => (await vendorOf(restarted)) === "anthropic");
  await until(async () => (await vendorOf(replica)) === "anthropic");
});
