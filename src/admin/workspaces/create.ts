import { randomBytes } from "node:crypto";
import { WorkspaceKindSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { invalid } from "../../contract/failure.ts";
import { readEnum } from "../../contract/json-names.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { type Actor, record } from "../shared/audit.ts";
import { readWorkspace, type WorkspaceAdmin } from "./workspace.ts";

/** Names do not begin with `ws_`, so they cannot be confused with identifiers. */
const NAME = /^(?!ws_)[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Creates a workspace with an empty balance. */
export function createWorkspace(pool: Pool): WorkspaceAdmin["createWorkspace"] {
  return async ({ name, kind }, actor) => {
    const isOrganization = readEnum("kind", WorkspaceKindSchema, kind) === "organization";
    if (!NAME.test(name)) {
      throw invalid(
        "name",
        "name must have 1 to 100 of A-Z, a-z, 0-9, '.', '_' and '-', " +
          "beginning with a letter or digit and not with ws_.",
      );
    }
    const workspace = await pool.tx(async (query) => {
      const id = await insertWorkspace(query, actor, name, isOrganization ? "organization" : "personal");
      if (!id) throw invalid("name", `There is a workspace "${name}" already. Choose another name.`);
      return readWorkspace(query, id);
    });
    return { workspace };
  };
}

/**
 * Creates a workspace and its account, with the limits of the first tier.
 * @returns its identifier; undefined when the name is taken
 */
export async function insertWorkspace(
  query: Query,
  actor: Actor,
  name: string,
  kind: "personal" | "organization",
): Promise<string | undefined> {
  const [row] = await query<{ id: string }>(
    "insert into workspaces (id, name, kind) values ($1, $2, $3) on conflict (name) do nothing returning id",
    [`ws_${randomBytes(12).toString("hex")}`, name, kind],
  );
  if (!row) return undefined;
  await query("insert into accounts (workspace_id) values ($1)", [row.id]);
  await query("select refresh_limits($1)", [row.id]);
  await record(query, actor, row.id, "workspace.create", { name, kind });
  return row.id;
}
