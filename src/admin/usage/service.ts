import type { GetUsageRequest } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { MetricsGroupBy } from "../../../gen/chorus/v1/generation_pb.js";
import type { Rates } from "../../admission/price.ts";
import { Failure } from "../../contract/failure.ts";
import { MEMBER_TAG } from "../../contract/subjects.ts";
import type { Pool } from "../../store/pool.ts";
import type { Actor } from "../shared/audit.ts";
import { visibleKeys } from "../shared/rights.ts";
import { checkSubject } from "../shared/subject.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { exportUsage } from "./export.ts";
import { readMetrics } from "./metrics.ts";
import { getPerformance } from "./performance.ts";
import type { ReadQuotas } from "./quotas.ts";
import { listTagNames } from "./tag-names.ts";
import { listTopKeys, listTopSubjects } from "./top-subjects.ts";
import type { UsageAdmin } from "./usage.ts";

/** Returns the usage of a workspace to its members and operators: the figures of `/v1/metrics` and `/v1/quotas`. */
export function createUsageAdmin(pool: Pool, quotas: ReadQuotas, rates: () => Rates): UsageAdmin {
  return {
    async getUsage({ workspace, keyId, subject, ...request }, actor) {
      const { id: workspaceId, name } = await findWorkspace(pool.query, actor, workspace);
      const keys = await visibleKeys(pool.query, actor, "");
      if (keys) checkOwn(actor, keys, request, subject);
      // The sums of a developer's own tag are those of their keys.
      const of = { workspaceId, keyId, subject, keys: subject.startsWith("tag:") ? undefined : keys };
      const usage = await readMetrics(pool, request, of);
      return { workspace: name, usage };
    },
    async getQuotas({ workspace, subject }, actor) {
      if (subject !== "") checkSubject("subject", subject);
      const keys = await visibleKeys(pool.query, actor, "");
      if (keys) checkOwn(actor, keys, {}, subject);
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

/** Developers see the use of their keys, and of themselves as a subject. @throws Failure missing_scope */
function checkOwn(
  actor: Actor,
  keys: readonly string[],
  { groupBy }: Partial<Pick<GetUsageRequest, "groupBy">>,
  subject: string,
): void {
  const isSplit = groupBy === MetricsGroupBy.USER || groupBy === MetricsGroupBy.TAG;
  const own = ["", `tag:${MEMBER_TAG}=${actor.id}`, ...keys.map((key) => `key:${key}`)];
  if (!isSplit && own.includes(subject)) return;
  const message =
    "Usage by user, by tag and of keys of others needs the role owner, billing or viewer in the workspace.";
  throw new Failure("missing_scope", { message });
}
