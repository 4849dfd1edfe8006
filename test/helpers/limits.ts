import type { MessageInitShape } from "@bufbuild/protobuf";
import { LimitNameSchema, type LimitOverrideSchema } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { numberOf } from "../../src/contract/json-names.ts";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "./admin.ts";
import { until } from "./until.ts";

/** A new value of a limit, by the word for its name. */
export interface LimitChange {
  name: string;
  to: bigint | "unlimited" | "default";
}

/** Changes of limits as a request states them. */
export function overridesOf(changes: readonly LimitChange[]): MessageInitShape<typeof LimitOverrideSchema>[] {
  return changes.map(({ name, to }) => ({
    name: numberOf(LimitNameSchema, name),
    change:
      typeof to === "bigint" ? { case: "value", value: to } : { case: to === "default" ? "reset" : to, value: {} },
  }));
}

/** Changes limits of a workspace without running requests, and waits until no replica has headroom from before. */
export async function setLimits(pool: Pool, workspace: string, changes: readonly LimitChange[]): Promise<void> {
  await adminOf(pool).workspaces.setLimits({ workspace, overrides: overridesOf(changes) });
  const reserved = () =>
    pool.query("select from grants join workspaces w on w.id = workspace_id where w.name = $1", [workspace]);
  await until(async () => (await reserved()).length === 0);
}
