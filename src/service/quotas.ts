import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type QuotasResponse,
  QuotasResponseSchema,
  type QuotaWindowSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import type { Caller } from "../admission/keys.ts";
import type { Admission } from "../admission/lease.ts";
import type { Usage, Window } from "../admission/usage.ts";

/** Use of the current minute, day and month. There are no limits yet, so every limit is null. */
export async function quotas(usage: Usage, admission: Admission, caller: Caller, now: Date): Promise<QuotasResponse> {
  const { minute, day, month } = await usage.windows(caller.workspaceId, now);
  return create(QuotasResponseSchema, {
    workspace: caller.workspace,
    tier: "free",
    asOf: timestampFromDate(now),
    windows: { minute: window(minute), day: window(day), month: window(month) },
    concurrentRequests: { used: BigInt(admission.running(caller.workspaceId)) },
  });
}

function window(use: Window): MessageInitShape<typeof QuotaWindowSchema> {
  return {
    resetsAt: timestampFromDate(use.resetsAt),
    requests: { used: BigInt(use.requests) },
    inputTokens: { used: BigInt(use.inputTokens) },
    outputTokens: { used: BigInt(use.outputTokens) },
  };
}
