import assert from "node:assert/strict";
import { test } from "vitest";
import { createAuthenticator, requireScope } from "../../src/admission/authenticate.ts";
import { hashSecret } from "../../src/admission/secret.ts";
import type { Pool } from "../../src/store/pool.ts";

/** The caller of a key whose row the database gives. */
async function callerOf(row: object) {
  const plain = { workspace_id: "ws_1", workspace: "one", id: "key_1", scopes: ["generate"], expires_at: null };
  const none = { fixed_tags: null, forbids_tags: false, capped: null, keeps_text: false };
  const rows = [{ secret_hash: hashSecret("secret"), ...plain, ...none, ...row }];
  const query = async (text: string, [hashes]: readonly Buffer[][]) =>
    text.includes("from api_keys") ? rows.filter((one) => hashes?.some((hash) => hash.equals(one.secret_hash))) : [];
  const pool = { query } as unknown as Pool;
  return createAuthenticator(pool, () => 1_000).authenticate("secret");
}

const PLAIN = { workspaceId: "ws_1", workspace: "one", keyId: "key_1", scopes: ["generate"] };

for (const [what, row, expected] of [
  ["a key without anything special", {}, {}],
  ["tags that each request has", { fixed_tags: { team: "blue" } }, { fixedTags: { team: "blue" } }],
  ["that requests may name no tags", { forbids_tags: true }, { forbidsTags: true }],
  ["which subjects can have caps", { capped: ["key", "user"] }, { capped: ["key", "user"] }],
  ["that the text of requests is kept", { keeps_text: true }, { keepsText: true }],
] as const) {
  test(`states of a caller: ${what}`, async () => {
    const caller = await callerOf(row);
    assert.deepEqual(caller, { ...PLAIN, ...expected });
    // Requests share it.
    for (const part of [caller, ...Object.values(caller)]) assert.ok(Object.isFrozen(part));
  });
}

test("refuses a key from its expiry on", async () => {
  assert.equal((await callerOf({ expires_at: new Date(1_001) })).keyId, "key_1");
  await assert.rejects(callerOf({ expires_at: new Date(1_000) }), { kind: "unauthenticated" });
});

test("allows what the scopes of a key name", async () => {
  const caller = await callerOf({ scopes: ["metrics"] });
  requireScope(caller, "metrics");
  assert.throws(() => requireScope(caller, "generate"), { kind: "missing_scope", message: /"generate"/ });
});
