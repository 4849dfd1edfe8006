import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelEntry, ModelTimeouts } from "../config/config.ts";
import type { ModelCall } from "../telemetry.ts";
import type { Tier } from "../terms.ts";
import { type CallEnd, modelCall } from "./cost.ts";
import { failover } from "./failover.ts";
import { createFetch } from "./fetch.ts";
import { createLatency, type Latency } from "./latency.ts";
import { ownOptions } from "./model.ts";
import { resilient } from "./resilient.ts";
import { tracedModel } from "./traced.ts";
import { createVendorModel } from "./vendor.ts";

/** One model of the catalogue. */
export interface Member {
  /** Name in the catalogue. */
  name: string;
  /**
   * Maker of the model. A server with OpenAI's format may host models of many makers, so each of its models counts as
   * its own.
   */
  vendor: string;
  tier: Tier;
  model: LanguageModelV4;
  /** Share of closed questions that it answers correctly, from 0 to 1. */
  accuracy?: number;
  /** Whether it accepts images. */
  images: boolean;
  /** Size of the context window in tokens. */
  contextTokens?: number;
  /** Its time to first text. Absent: it is never hedged. */
  latency?: Latency;
}

/** All models of the service. */
export interface Catalogue {
  /** Whether all models are built-in offline models. */
  readonly offline: boolean;
  /** All models, in the order of the configuration. */
  readonly members: readonly Member[];
  /** A failover over the tier's models in the order of the configuration, then over those of the other tier. */
  tier(tier: Tier): LanguageModelV4;
  /** Closes all connections to vendors; running calls fail. */
  close(): Promise<void>;
}

/**
 * Makes the models of the configuration. Nothing is sent before the first call.
 * @param onCall called after each call of a vendor, failed ones and retries included, with the `generation` of the
 *   call's own options
 */
export function createCatalogue(
  entries: readonly ModelEntry[],
  timeouts: ModelTimeouts,
  onCall?: (call: ModelCall, generation?: string) => void,
): Catalogue {
  const { fetch, close } = createFetch({ connectMs: timeouts.connectMs });
  const members = entries.map((entry): Member => {
    const latency = createLatency();
    const onEnd = (end: CallEnd) => {
      recordLatency(latency, end);
      onCall?.(modelCall(entry, end), ownOptions(end.call).generation);
    };
    return {
      name: entry.name,
      vendor: entry.vendor === "openai-compatible" ? `${entry.baseUrl} ${entry.model}` : entry.vendor,
      tier: entry.tier,
      model: resilient(tracedModel(createVendorModel(entry, fetch), entry), { timeouts, onEnd }),
      images: entry.images,
      ...(entry.accuracy === undefined ? {} : { accuracy: entry.accuracy }),
      ...(entry.contextTokens === undefined ? {} : { contextTokens: entry.contextTokens }),
      ...(entry.vendor === "offline" ? {} : { latency }),
    };
  });
  const ofTier = (tier: Tier) => failover(inOrder(members, tier).map(({ model }) => model));
  const tiers = { fast: ofTier("fast"), strong: ofTier("strong") };
  return {
    offline: members.every(({ vendor }) => vendor === "offline"),
    members,
    tier: (tier) => tiers[tier],
    close,
  };
}

/** The members of a tier, then those of the other tier. */
export function inOrder(members: readonly Member[], tier: Tier): Member[] {
  return [...members.filter((member) => member.tier === tier), ...members.filter((member) => member.tier !== tier)];
}

function recordLatency(latency: Latency, { outcome, received, firstTextMs }: CallEnd): void {
  if (firstTextMs === undefined) return;
  if (received > 0) latency.record(firstTextMs);
  else if (outcome === "left" || outcome === "timed_out") latency.recordAtLeast(firstTextMs);
}
