import { SessionClient, secretOfLink } from "./session-client.ts";

/** The session of a signed-in owner. */
export interface Session {
  readonly workspace: string;
  readonly workspaceId: string;
  readonly expiresAt: Date;
}

let current = "";

/** Sessions of owners. */
export const owners = new SessionClient<Session>("/console/session", (body) => {
  const { workspace = "", workspace_id: workspaceId = "", expires_at: expiresAt = "" } = body;
  current = workspaceId;
  return { workspace, workspaceId, expiresAt: new Date(expiresAt) };
});

/** Identifier of the workspace of the last session. */
export function currentWorkspace(): string {
  return current;
}

/**
 * The session of this browser; undefined without one. If the page was opened with a sign-in link, that opens it.
 * @throws SignInError, also for a link that cannot be used in a browser without a session; TypeError if the connection
 *   fails
 */
export async function currentSession(): Promise<Session | undefined> {
  const secret = secretOfLink(location.hash);
  if (!secret) return owners.current();
  // The link is used up, so neither the address nor the history keeps it.
  history.replaceState(history.state, "", location.pathname);
  return owners.signIn(secret).catch(async (error: unknown) => (await owners.current()) ?? Promise.reject(error));
}
