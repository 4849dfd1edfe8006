import type { Clock } from "../../contract/clock.ts";
import type { Pool } from "../../store/pool.ts";
import { pageOf, readPageToken, sizeOfPage } from "../shared/page.ts";
import type { Tokens } from "../sign-in/tokens.ts";
import { createWorkspace } from "./create.ts";
import { getNextTier, setLimits, setTier } from "./limits.ts";
import { createOwnerToken } from "./owner-token.ts";
import { setRunText } from "./run-text.ts";
import { createSignInLink } from "./sign-in-link.ts";
import {
  COLUMNS,
  findWorkspace,
  readWorkspace,
  type WorkspaceAdmin,
  type WorkspaceRow,
  workspaceMessage,
} from "./workspace.ts";

/**
 * Manages workspaces for operators, and shows owners their workspace.
 * @param canKeepText whether the service has a key for the text of requests
 */
export function createWorkspaceAdmin(
  pool: Pool,
  tokens: Pick<Tokens, "forget">,
  clock: Clock,
  canKeepText: boolean,
): WorkspaceAdmin {
  return {
    createWorkspace: createWorkspace(pool),
    /** Lists workspaces by name, in pages. */
    async listWorkspaces({ pageSize, pageToken }) {
      const size = sizeOfPage(pageSize);
      const [after = ""] = readPageToken(pageToken, /^([\w.-]+)$/) ?? [];
      const found = await pool.query<WorkspaceRow>(
        `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id, in_use(w.id) u
         where w.name > $1 order by w.name limit $2`,
        [after, size + 1],
      );
      const { rows, nextPageToken } = pageOf(found, size, ({ name }) => name);
      return { workspaces: rows.map(workspaceMessage), nextPageToken };
    },
    async getWorkspace({ workspace }, actor) {
      const { id } = await findWorkspace(pool.query, actor, workspace);
      return { workspace: await readWorkspace(pool.query, id) };
    },
    getNextTier: getNextTier(pool),
    setTier: setTier(pool),
    setLimits: setLimits(pool),
    setRunText: setRunText(pool, canKeepText),
    createOwnerToken: createOwnerToken(pool, tokens, clock),
    createSignInLink: createSignInLink(pool, clock),
  };
}
