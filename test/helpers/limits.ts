import { createWorkspaces, type Workspaces } from "../../src/admin/workspaces/workspaces.ts";
import type { Pool } from "../../src/store/pool.ts";
import { OPERATOR } from "./actors.ts";
import { until } from "./until.ts";

/** Changes limits of a workspace without running requests, and waits until no replica has headroom from before. */
export async function setLimits(
  pool: Pool,
  workspace: string,
  limits: Parameters<Workspaces["setLimits"]>[2],
): Promise<void> {
  await createWorkspaces(pool).setLimits(OPERATOR, workspace, limits);
  const reserved = () =>
    pool.query("select from grants join workspaces w on w.id = workspace_id where w.name = $1", [workspace]);
  await until(async () => (await reserved()).length === 0);
}
