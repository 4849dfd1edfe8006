import { create } from "@bufbuild/protobuf";
import { GetUsageResponseSchema, type UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsRequestSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Usage } from "../admission/usage.ts";
import type { Workspaces } from "../admission/workspaces.ts";
import type { Admin } from "./admin.ts";
import { metrics } from "./metrics.ts";

export type UsageAdmin = Admin<typeof UsageService>;

/** What a workspace used, for operators and its owner; the figures are those of `/v1/metrics`. */
export function createUsageAdmin(usage: Usage, workspaces: Workspaces): UsageAdmin {
  return {
    async getUsage({ workspace, from, to, interval, groupBy }, actor) {
      const { id, name } = await workspaces.get(actor, workspace);
      const request = create(MetricsRequestSchema, { interval, groupBy, ...(from && { from }), ...(to && { to }) });
      const caller = { workspaceId: id, workspace: name, keyId: "", scopes: [] };
      return create(GetUsageResponseSchema, {
        workspace: name,
        usage: await metrics(usage, request, caller, new Date()),
      });
    },
  };
}
