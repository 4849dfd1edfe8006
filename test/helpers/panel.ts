import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { RATES } from "./bench.ts";
import { testDatabase } from "./database.ts";
import type { Lifetime } from "./lifetime.ts";
import { readEvents, type SseEvent, startService, type TestService } from "./service.ts";
import { type Reply, type ScriptedVendor, startVendor, type VendorCall, type VendorKind } from "./vendors.ts";

const KINDS = ["openai", "anthropic", "google"] as const;

/** Models of each vendor; their names are in the operator's books and nowhere else. */
const MODELS: Record<VendorKind, { fast: string; strong: string }> = {
  openai: { fast: "gpt-4o-mini", strong: "gpt-4o" },
  anthropic: { fast: "claude-haiku-4-5", strong: "claude-sonnet-4-5" },
  google: { fast: "gemini-2.5-flash", strong: "gemini-2.5-pro" },
};

/** What must be in no response: vendors, models, and names of the catalogue. */
export const NAMES = /openai|anthropic|google|gpt|claude|gemini|member-/i;

/** USD per million tokens of a strong model. */
export const PRICE = { input: 2, output: 8, cached: 1 };
/** The same of a fast one. */
export const FAST_PRICE = { input: 0.2, output: 0.8, cached: 0.1 };

/** What a call is for, as its prompt tells. */
export type Phase = "draft" | "analysis" | "write" | "judge";

export function phaseOf({ body }: VendorCall): Phase {
  if (!body.includes("drafts of an answer to it")) return "draft";
  if (body.includes("Do not answer it")) return "analysis";
  return body.includes("Write the best") ? "write" : "judge";
}

/** What one vendor does, in each phase; what is left out is answered as always. */
export type Behaviour = Partial<Record<Phase, Reply>>;

/**
 * A service with three scripted vendors, each with a fast and a strong model.
 * @param more members of every entry of the catalogue, by vendor
 */
export async function startPanel(
  t: Lifetime,
  env: Record<string, string> = {},
  more: Partial<Record<VendorKind, object>> = {},
) {
  const vendors = {} as Record<VendorKind, ScriptedVendor>;
  for (const kind of KINDS) vendors[kind] = await startVendor(kind);
  const all = KINDS.map((kind) => vendors[kind]);
  t.onTestFinished(async () => {
    await Promise.all(all.map((vendor) => vendor.close()));
  });
  const folder = await mkdtemp(join(tmpdir(), "chorus-panel-"));
  t.onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const path = join(folder, "models.json");
  await writeFile(
    path,
    JSON.stringify({ models: KINDS.flatMap((kind) => entriesOf(kind, vendors[kind], more[kind])) }),
  );
  const { url: databaseUrl, pool } = await testDatabase(t);
  const base = {
    CHORUS_MODELS: path,
    PANEL_KEY: "vendor-secret",
    CHORUS_RATES: JSON.stringify(RATES),
    CHORUS_STREAM_MS: '{"headersMs":60000,"keepAliveMs":60000,"stallMs":60000}',
    ...env,
  };
  const start = (more: Record<string, string> = {}) => startService(t, { databaseUrl, env: { ...base, ...more } });
  const service = await start();

  return {
    vendors,
    pool,
    service,
    /** Another service on the same database, with more of an environment. */
    start,
    /** Says what each vendor does from now on, and forgets its calls. */
    script(behaviours: Partial<Record<VendorKind, Behaviour>>) {
      for (const kind of KINDS) {
        vendors[kind].calls.length = 0;
        vendors[kind].always((call) => behaviours[kind]?.[phaseOf(call)] ?? { text: "Hello." });
      }
    },
    /** All calls since then. */
    calls: () => all.flatMap(({ calls }) => calls),
    ask: (body: object, on: TestService = service) => askWhole(on, body),
    async stream(body: object, on: TestService = service): Promise<SseEvent[]> {
      return readEvents(await on.post("/v1/generate:stream", body));
    },
  };
}

function entriesOf(kind: VendorKind, { url }: ScriptedVendor, more: object = {}) {
  return (["fast", "strong"] as const).map((tier) => ({
    name: `member-${kind}-${tier}`,
    vendor: kind,
    model: MODELS[kind][tier],
    base_url: url,
    api_key_env: "PANEL_KEY",
    tier,
    price: tier === "fast" ? FAST_PRICE : PRICE,
    ...more,
  }));
}

/** The whole answer to a request that succeeds. */
async function askWhole(service: TestService, body: object) {
  const response = await service.post("/v1/generate", body);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}
