import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type QuotasResponse,
  QuotasResponseSchema,
  type QuotaWindowSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/keys.ts";
import type { Usage, WindowUse } from "../admission/usage.ts";

/** Use of the current minute, day and month. There are no limits yet, so every limit is null. */
export async function quotas(usage: Usage, caller: Caller, now: Date): Promise<QuotasResponse> {
  const { minute, day, month, running } = await usage.windows(caller.workspaceId, now);
  const [y, m, d] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate()];
  return create(QuotasResponseSchema, {
    workspace: caller.workspace,
    tier: "free",
    asOf: timestampFromDate(now),
    windows: {
      minute: window(minute, new Date(Math.floor(now.getTime() / 60_000) * 60_000 + 60_000)),
      day: window(day, new Date(Date.UTC(y, m, d + 1))),
      month: window(month, new Date(Date.UTC(y, m + 1, 1))),
    },
    concurrentRequests: { used: BigInt(running) },
  });
}

function window(use: WindowUse, resetsAt: Date): MessageInitShape<typeof QuotaWindowSchema> {
  return {
    resetsAt: timestampFromDate(resetsAt),
    requests: { used: BigInt(use.requests) },
    inputTokens: { used: BigInt(use.inputTokens) },
    outputTokens: { used: BigInt(use.outputTokens) },
  };
}
