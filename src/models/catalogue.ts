import type { LanguageModelV4 } from "@ai-sdk/provider";
import type { ModelEntry, ModelTimeouts } from "../config/config.ts";
import type { ModelCall } from "../telemetry.ts";
import type { Tier } from "../terms.ts";
import { type CallEnd, modelCall } from "./cost.ts";
import { failover } from "./failover.ts";
import { createFetch } from "./fetch.ts";
import { createLatency, type Latency } from "./latency.ts";
import { resilient } from "./resilient.ts";
import { tracedModel } from "./traced.ts";
import { createVendorModel } from "./vendor.ts";

/** A single model of the catalogue. */
export interface Member {
  /** Name in the catalogue. */
  name: string;
  /** Whose model it is, so far as that is known: a server of OpenAI's format may have models of many makers, and counts as one for each. */
  vendor: string;
  tier: Tier;
  model: LanguageModelV4;
  /** Share of closed questions that it gets right, 0 to 1. */
  accuracy?: number;
  /** Whether it sees images. */
  images: boolean;
  /** Size of the context window in tokens. */
  contextTokens?: number;
  /** How long it takes to its first text. Absent: it is never hedged. */
  latency?: Latency;
}

/** The models that the service has. */
export interface Catalogue {
  /** Whether every model is a built-in offline one. */
  readonly offline: boolean;
  /** Every model, in the catalogue's order. */
  readonly members: readonly Member[];
  /** The tier as one model: its own models in the catalogue's order, then those of the other tier. */
  tier(tier: Tier): LanguageModelV4;
  /** Closes all connections to vendors; calls under way fail. */
  close(): Promise<void>;
}

/**
 * Connects the entries of the configuration. Nothing is sent before the first call.
 * @param onCall hears of each call of a vendor when it has ended: tries, re-asks and failures too. `generation` is what the call had in
 *   `providerOptions.chorus.generation`
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
      bookLatency(latency, end);
      const generation = end.call.providerOptions?.chorus?.generation;
      onCall?.(modelCall(entry, end), typeof generation === "string" ? generation : undefined);
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
  const first = (tier: Tier) => failover(inOrder(members, tier).map(({ model }) => model));
  const tiers = { fast: first("fast"), strong: first("strong") };
  return {
    offline: members.every(({ vendor }) => vendor === "offline"),
    members,
    tier: (tier) => tiers[tier],
    close,
  };
}

/** The members of a tier, then those of the other one. */
export function inOrder(members: readonly Member[], tier: Tier): Member[] {
  return [...members.filter((member) => member.tier === tier), ...members.filter((member) => member.tier !== tier)];
}

function bookLatency(latency: Latency, { outcome, received, firstTextMs }: CallEnd): void {
  if (firstTextMs === undefined) return;
  if (received > 0) latency.record(firstTextMs);
  else if (outcome === "left" || outcome === "timed_out") latency.recordAtLeast(firstTextMs);
}
