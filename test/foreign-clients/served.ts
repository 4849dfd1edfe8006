import { test as base } from "../helpers/fixtures.ts";
import { fixture } from "../helpers/lifetime.ts";
import { startService, type TestService } from "../helpers/service.ts";
import { type ScriptedVendor, startVendor, type VendorKind } from "../helpers/vendors.ts";
import type { Setup } from "./clients.ts";

export interface Served {
  readonly vendor: ScriptedVendor;
  readonly service: TestService;
}

export const KINDS: readonly VendorKind[] = ["openai", "anthropic", "google"];

/** `test` with a service on models of each vendor, which starts when a test first asks for it. */
export const test = base.extend(
  "serve",
  { scope: "file" },
  fixture(async (t) => {
    const served = new Map<VendorKind, Promise<Served>>();
    const start = async (kind: VendorKind): Promise<Served> => {
      const vendor = await startVendor(kind);
      t.onTestFinished(() => vendor.close());
      return { vendor, service: await startService(t, { env: vendor.env }) };
    };
    return (kind: VendorKind) => {
      const known = served.get(kind) ?? start(kind);
      served.set(kind, known);
      return known;
    };
  }),
);

export function setupOf({ service }: Served): Setup {
  return { baseURL: `${service.url}/v1`, apiKey: service.apiKey, retries: 0, fetch };
}

export const QUESTION = "What is the weather?";
export const ANSWER = "Rain, sun, snow.";
/** The cities that the agent asks for, in their order. */
export const CITIES = ["Oslo", "Rome", "Bern"];
/** What the tool says. */
export const WEATHER: Readonly<Record<string, string>> = { Oslo: "rain", Rome: "sun", Bern: "snow" };

/**
 * Scripts an agent that asks for the weather of two cities, then for one more, and then answers.
 * @param text what it says before the first calls
 */
export function play({ vendor }: Served, text?: string): void {
  const callOf = (city: string) => ({ name: "get_weather", arguments: JSON.stringify({ city, day: null }) });
  vendor.reset();
  vendor.reply(
    { ...(text !== undefined && { text }), calls: [callOf("Oslo"), callOf("Rome")] },
    { calls: [callOf("Bern")] },
    { text: ANSWER },
  );
}
