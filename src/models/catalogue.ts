import type { ModelEntry, ModelTimeouts } from "../config/config.ts";
import { createInternalErrors, type InternalErrors } from "../internal-errors.ts";
import type { CallRecord } from "../telemetry.ts";
import type { Tier } from "../terms.ts";
import { callRecord } from "./cost.ts";
import { failover } from "./failover.ts";
import { createHttpClient } from "./http.ts";
import { createLatency, type Latency } from "./latency.ts";
import type { Model } from "./model.ts";
import { type CallEnd, resilient } from "./resilient.ts";
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
  model: Model;
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
  tier(tier: Tier): Model;
  /** Closes all connections to vendors; running calls fail. */
  close(): Promise<void>;
}

/**
 * Makes the models of the configuration. Nothing is sent before the first call.
 * @param onCall called after each call of a vendor, failed ones and retries included
 * @param errors gets what `onCall` and a call's `onUsed` throw, which does not affect the call
 */
export function createCatalogue(
  entries: readonly ModelEntry[],
  timeouts: ModelTimeouts,
  onCall?: (call: CallRecord) => void,
  errors: InternalErrors = createInternalErrors(),
): Catalogue {
  const http = createHttpClient({ connectMs: timeouts.connectMs });
  const members = entries.map((entry): Member => {
    const latency = createLatency();
    const onEnd = (end: CallEnd) =>
      errors.guard("model_call", () => {
        recordLatency(latency, end);
        const record = callRecord(entry, end);
        // The request's own costs first: they are kept if `onCall` throws.
        end.call.onUsed?.(record);
        onCall?.(record);
      });
    return {
      name: entry.name,
      vendor: entry.vendor === "openai-compatible" ? `${entry.baseUrl} ${entry.model}` : entry.vendor,
      tier: entry.tier,
      model: resilient(tracedModel(createVendorModel(entry, http), entry), { timeouts, onEnd }),
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
    close: http.close,
  };
}

/** The members of a tier, then those of the other tier. */
export function inOrder(members: readonly Member[], tier: Tier): Member[] {
  return [...members.filter((member) => member.tier === tier), ...members.filter((member) => member.tier !== tier)];
}

function recordLatency(latency: Latency, { outcome, received, firstTextMs }: CallEnd): void {
  if (received > 0) latency.record(firstTextMs);
  else if (outcome === "left" || outcome === "timed_out") latency.recordAtLeast(firstTextMs);
}
