import assert from "node:assert/strict";
import { test } from "vitest";
import { slackMessage } from "../../src/alerts/sentence.ts";

const textOf = (type: string, data: object): string =>
  JSON.parse(slackMessage(JSON.stringify({ type, timestamp: "2026-11-22T10:52:52Z", data }))).text;

test("says each alert in a sentence", () => {
  const data = { workspace_id: "ws_1", workspace: "team" };
  const credit = { ...data, alert: "credit_left", value: 99.5, threshold: 100 };
  const spend = { ...data, alert: "spend_share", value: 0.805, threshold: 0.8 };
  const failures = { ...data, alert: "failure_share", value: 0.25, threshold: 0.2 };
  const use = { subject: "user:u-4711", limit: "user:credits_per_day", used: 4.1, amount: 5 };
  const cap = { ...data, alert: "cap_share", value: 0.82, threshold: 0.8, ...use };
  assert.equal(textOf("alert.raised", credit), "Chorus, workspace team: 99.5 credits are left; the alert is at 100.");
  assert.equal(
    textOf("alert.cleared", { ...credit, value: 120 }),
    "Chorus, workspace team: no longer raised. 120 credits are left; the alert is at 100.",
  );
  assert.equal(
    textOf("alert.raised", spend),
    "Chorus, workspace team: 80.5 % of a spend limit is used; the alert is at 80 %.",
  );
  assert.equal(
    textOf("alert.raised", { ...spend, period: "month" }),
    "Chorus, workspace team: 80.5 % of the spend limit of the month is used; the alert is at 80 %.",
  );
  assert.equal(
    textOf("alert.raised", failures),
    "Chorus, workspace team: 25 % of the requests of the last ten minutes failed; the alert is at 20 %.",
  );
  assert.equal(
    textOf("alert.raised", cap),
    "Chorus, workspace team: user:u-4711 has used 82 % of user:credits_per_day (4.1 of 5); the alert is at 80 %.",
  );
  assert.equal(textOf("alert.test", {}), "Chorus: this is a test of your alerts.");
  assert.equal(textOf("alert.raised", { ...data, alert: "new_kind" }), "Chorus, workspace team: new_kind");
});

test("names become no links and no mentions", () => {
  const data = { alert: "credit_left", workspace: "<!channel> & <https://example.com|team>", value: 1, threshold: 2 };
  const shown = "&lt;!channel&gt; &amp; &lt;https://example.com|team&gt;";
  assert.equal(textOf("alert.raised", data), `Chorus, workspace ${shown}: 1 credits are left; the alert is at 2.`);
  // Mattermost and Discord notify all readers of a channel by these words.
  const cap = { ...data, alert: "cap_share", workspace: "team", limit: "user:credits_total" };
  for (const name of ["@everyone", "@channel", "@here", "@all"]) {
    const text = textOf("alert.raised", { ...cap, subject: `user:${name}` });
    assert.ok(!text.includes(name) && text.includes(`user:@\u200b${name.slice(1)} has used`), text);
  }
});
