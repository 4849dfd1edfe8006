import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelEntry, ModelTimeouts, Tier } from "../config.ts";
import type { ModelCall } from "../telemetry.ts";
import { modelCall } from "./cost.ts";
import { failover } from "./failover.ts";
import { createFetch } from "./fetch.ts";
import { resilient } from "./resilient.ts";
import { createVendorModel } from "./vendor.ts";

/** The models that the service has. */
export interface Catalogue {
  /** Whether every model is a built-in offline one. */
  readonly offline: boolean;
  /** The tier as one model: its own models in the catalogue's order, then those of the other tier. */
  tier(tier: Tier): LanguageModelV4;
  /** Closes all connections to vendors; calls under way fail. */
  close(): Promise<void>;
}

/**
 * Connects the entries of the configuration. Nothing is sent before the first call.
 * @param onCall hears of each call of a vendor when it has ended: tries, re-asks and failures too
 */
export function createCatalogue(
  entries: readonly ModelEntry[],
  timeouts: ModelTimeouts,
  onCall?: (call: ModelCall) => void,
): Catalogue {
  const { fetch, close } = createFetch({ connectMs: timeouts.connectMs });
  const models = entries.map((entry) => ({
    tier: entry.tier,
    model: resilient(createVendorModel(entry, fetch), {
      timeouts,
      onEnd: (end) => onCall?.(modelCall(entry, end)),
    }),
  }));
  const first = (tier: Tier) => {
    const [own, others] = [models.filter((one) => one.tier === tier), models.filter((one) => one.tier !== tier)];
    return failover([...own, ...others].map((one) => one.model));
  };
  const tiers = { fast: first("fast"), strong: first("strong") };
  return {
    offline: entries.every((entry) => entry.vendor === "offline"),
    tier: (tier) => tiers[tier],
    close,
  };
}
