import type { Rates } from "../../admission/price.ts";
import type { Pool } from "../../store/pool.ts";
import { checkSubject } from "../shared/subject.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { exportUsage } from "./export.ts";
import { readMetrics } from "./metrics.ts";
import { getPerformance } from "./performance.ts";
import type { ReadQuotas } from "./quotas.ts";
import { listTagNames } from "./tag-names.ts";
import { listTopKeys, listTopSubjects } from "./top-subjects.ts";
import type { UsageAdmin } from "./usage.ts";

/** Returns the usage of a workspace to operators and its owner, with the figures of `/v1/metrics` and `/v1/quotas`. */
export function createUsageAdmin(pool: Pool, quotas: ReadQuotas, rates: () => Rates): UsageAdmin {
  return {
    async getUsage({ workspace, keyId, subject, ...request }, actor) {
      const { id: workspaceId, name } = await findWorkspace(pool.query, actor, workspace);
      const usage = await readMetrics(pool, request, { workspaceId, keyId, subject });
      return { workspace: name, usage };
    },
    async getQuotas({ workspace, subject }, actor) {
      if (subject !== "") checkSubject("subject", subject);
      const { id: workspaceId, name } = await findWorkspace(pool.query, actor, workspace);
      const found = await quotas({ workspaceId, workspace: name }, subject === "" ? [] : [subject]);
      return { quotas: found, rates: rates() };
    },
    getPerformance: getPerformance(pool),
    listTopKeys: listTopKeys(pool),
    listTopSubjects: listTopSubjects(pool),
    listTagNames: listTagNames(pool),
    exportUsage: exportUsage(pool),
  };
}
