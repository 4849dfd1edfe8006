import type { Pool } from "../../store/pool.ts";
import type { Tokens } from "../sign-in/tokens.ts";
import { createWorkspace } from "./create.ts";
import { getNextTier, setLimits, setTier } from "./limits.ts";
import { createOwnerToken } from "./owner-token.ts";
import { getWorkspace, listWorkspaces } from "./read.ts";
import { createSignInLink } from "./sign-in-link.ts";
import type { WorkspaceAdmin } from "./workspace.ts";

/**
 * Manages workspaces for operators, and shows owners their workspace.
 * @param clock the time in milliseconds since 1970
 */
export function createWorkspaceAdmin(pool: Pool, tokens: Pick<Tokens, "forget">, clock: () => number): WorkspaceAdmin {
  return {
    createWorkspace: createWorkspace(pool),
    listWorkspaces: listWorkspaces(pool),
    getWorkspace: getWorkspace(pool),
    getNextTier: getNextTier(pool),
    setTier: setTier(pool),
    setLimits: setLimits(pool),
    createOwnerToken: createOwnerToken(pool, tokens, clock),
    createSignInLink: createSignInLink(pool, clock),
  };
}
