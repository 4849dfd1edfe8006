import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type QuotaSchema,
  type QuotasResponse,
  QuotasResponseSchema,
  type QuotaWindowSchema,
  SpendPeriodSchema,
} from "../../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../../admission/authenticate.ts";
import { numberOf } from "../../json-names.ts";
import type { Usage, Use, Window } from "./usage.ts";

/** Returns the limits of the caller's workspace and their use. */
export async function quotas(
  usage: Pick<Usage, "quotas">,
  caller: Pick<Caller, "workspaceId" | "workspace">,
): Promise<QuotasResponse> {
  const { tier, asOf, windows, concurrentRequests, credit, spendLimits } = await usage.quotas(caller.workspaceId);
  return create(QuotasResponseSchema, {
    workspace: caller.workspace,
    tier,
    asOf: timestampFromDate(asOf),
    windows: { minute: window(windows.minute), day: window(windows.day), month: window(windows.month) },
    concurrentRequests: quota(concurrentRequests),
    credit,
    spendLimits: spendLimits.map(({ period, resetsAt, ...limit }) => ({
      ...limit,
      period: numberOf(SpendPeriodSchema, period),
      remaining: remaining(limit),
      resetsAt: timestampFromDate(resetsAt),
    })),
  });
}

function window({ resetsAt, requests, inputTokens, outputTokens }: Window): MessageInitShape<typeof QuotaWindowSchema> {
  return {
    resetsAt: timestampFromDate(resetsAt),
    requests: quota(requests),
    inputTokens: quota(inputTokens),
    outputTokens: quota(outputTokens),
  };
}

function quota({ limit, used }: Use): MessageInitShape<typeof QuotaSchema> {
  if (limit === null) return { used: BigInt(used) };
  return { limit: BigInt(limit), used: BigInt(used), remaining: BigInt(remaining({ limit, used })) };
}

/**
 * Never negative: a limit can be set below its use. Rounded to millionths, because decimal fractions are inexact in
 * binary.
 */
function remaining({ limit, used }: { limit: number; used: number }): number {
  return Math.max(0, Math.round((limit - used) * 1e6) / 1e6);
}
