import { create } from "@bufbuild/protobuf";
import {
  GetWorkspaceResponseSchema,
  ListWorkspacesResponseSchema,
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import type { Pool } from "../../store/pool.ts";
import { pageOf, readPageToken, sizeOfPage } from "../shared/page.ts";
import {
  COLUMNS,
  findWorkspace,
  readWorkspace,
  type WorkspaceAdmin,
  type WorkspaceRow,
  workspaceMessage,
} from "./workspace.ts";

export function getWorkspace(pool: Pool): WorkspaceAdmin["getWorkspace"] {
  return async ({ workspace }, actor) => {
    const { id } = await findWorkspace(pool.query, actor, workspace);
    return create(GetWorkspaceResponseSchema, { workspace: await readWorkspace(pool.query, id) });
  };
}

/** Lists workspaces by name, in pages. */
export function listWorkspaces(pool: Pool): WorkspaceAdmin["listWorkspaces"] {
  return async ({ pageSize, pageToken }) => {
    const size = sizeOfPage(pageSize);
    const [after = ""] = readPageToken(pageToken, /^([\w.-]+)$/) ?? [];
    const found = await pool.query<WorkspaceRow>(
      `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id, in_use(w.id) u
       where w.name > $1 order by w.name limit $2`,
      [after, size + 1],
    );
    const { rows, nextPageToken } = pageOf(found, size, ({ name }) => name);
    return create(ListWorkspacesResponseSchema, { workspaces: rows.map(workspaceMessage), nextPageToken });
  };
}
