import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { LedgerEntryKind, type LedgerEntrySchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import type { GetQuotasResponseSchema } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { LimitName, type LimitSchema, type WorkspaceSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { SpendPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { ago, later, noise } from "./clock.ts";

const LIMITS: [LimitName, bigint][] = [
  [LimitName.CONCURRENT_REQUESTS, 32n],
  [LimitName.REQUESTS_PER_MINUTE, 600n],
  [LimitName.INPUT_TOKENS_PER_MINUTE, 400_000n],
  [LimitName.OUTPUT_TOKENS_PER_MINUTE, 80_000n],
  [LimitName.REQUESTS_PER_DAY, 50_000n],
  [LimitName.INPUT_TOKENS_PER_DAY, 40_000_000n],
];

const limits = (factor: bigint): MessageInitShape<typeof LimitSchema>[] =>
  LIMITS.map(([name, value]) => ({ name, value: value * factor }));

export const workspace: MessageInitShape<typeof WorkspaceSchema> = {
  id: "ws_8f2k1m0q",
  name: "acme",
  createdAt: ago(90 * 86_400_000),
  tier: "1",
  limits: limits(1n),
  overriddenLimits: [LimitName.CONCURRENT_REQUESTS],
  granted: "184.25",
  purchased: "2312.401817",
  held: "3.1204",
  purchasedTotal: "7500",
  running: 4,
  spendLimits: [
    { period: SpendPeriod.DAY, amount: "60" },
    { period: SpendPeriod.MONTH, amount: "1500" },
  ],
};

export const newWorkspace: MessageInitShape<typeof WorkspaceSchema> = {
  ...workspace,
  granted: "100",
  purchased: "0",
  held: "0",
  purchasedTotal: "0",
  running: 0,
  spendLimits: [],
  overriddenLimits: [],
};

export const nextTier = { tier: { name: "2", purchased: "10000", limits: limits(4n) }, missing: "2500" };

const MIDNIGHT = timestampFromMs(Date.parse("2026-03-15T00:00:00Z"));
const MONTH_END = timestampFromMs(Date.parse("2026-04-01T00:00:00Z"));

const window = (resetsAt: Timestamp, ...pairs: [used: bigint, limit?: bigint][]) => {
  const [requests, inputTokens, outputTokens] = pairs.map(([used, limit]) => ({
    used,
    ...(limit === undefined ? {} : { limit }),
  }));
  return { resetsAt, requests, inputTokens, outputTokens };
};

export const quotas: MessageInitShape<typeof GetQuotasResponseSchema> = {
  quotas: {
    workspace: "acme",
    tier: "1",
    asOf: ago(0),
    concurrentRequests: { limit: 32n, used: 4n },
    windows: {
      minute: window(later(7000), [214n, 600n], [141_204n, 400_000n], [68_400n, 80_000n]),
      day: window(MIDNIGHT, [18_204n, 50_000n], [11_204_912n, 40_000_000n], [2_104_331n]),
      month: window(MONTH_END, [402_118n], [310_204_912n], [61_104_331n]),
    },
    spendLimits: [
      { period: SpendPeriod.DAY, limit: 60, used: 51.2841, remaining: 8.7159, resetsAt: MIDNIGHT },
      { period: SpendPeriod.MONTH, limit: 1500, used: 812.4, remaining: 687.6, resetsAt: MONTH_END },
    ],
  },
  rates: { input: 2.5, cached: 0.25, output: 10 },
};

export const newQuotas: MessageInitShape<typeof GetQuotasResponseSchema> = {
  ...quotas,
  quotas: {
    workspace: "acme",
    tier: "1",
    asOf: ago(0),
    concurrentRequests: { limit: 32n, used: 0n },
    windows: {
      minute: window(later(7000), [0n, 600n], [0n, 400_000n], [0n, 80_000n]),
      day: window(MIDNIGHT, [0n, 50_000n], [0n, 40_000_000n], [0n]),
      month: window(MONTH_END, [0n], [0n], [0n]),
    },
  },
};

const KINDS: Record<number, [LedgerEntryKind, string, string, string]> = {
  6: [LedgerEntryKind.PURCHASE, "INV-2026-0318", "0", "1000"],
  13: [LedgerEntryKind.GRANT, "Onboarding credit", "250", "0"],
  19: [LedgerEntryKind.ADJUSTMENT, "Correction of INV-2026-0311", "-12.5", "0"],
};

let balance = 2_496_651_817n;

/** Movements, newest first, with the balance after each. */
export const ledger: MessageInitShape<typeof LedgerEntrySchema>[] = Array.from({ length: 25 }, (_, i) => {
  const price = (0.002 + noise(i) * 0.09).toFixed(6);
  const request = `req_${Math.floor(noise(i + 7) * 1e9).toString(36)}${i}`;
  const [kind, reference, granted, purchased] = KINDS[i] ?? [LedgerEntryKind.SETTLEMENT, request, "0", `-${price}`];
  const after = (Number(balance) / 1e6).toFixed(6);
  balance -= BigInt(Math.round((Number(granted) + Number(purchased)) * 1e6));
  const at = ago(i * 17 * 61_000 + 12_000);
  return { id: `${9000 - i}`, at, kind, reference, granted, purchased, held: "0", balance: after };
});
