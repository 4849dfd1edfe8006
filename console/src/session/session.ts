/** The session of a signed-in owner. */
export interface Session {
  readonly workspace: string;
  readonly workspaceId: string;
  readonly expiresAt: Date;
}

/** A response of the service other than a session. */
export class SignInError extends Error {
  readonly status: number;
  /** Seconds after which to try again; undefined if waiting does not help. */
  readonly retryAfterS: number | undefined;

  constructor(status: number, message: string, retryAfterS: number | undefined) {
    super(message);
    this.name = "SignInError";
    this.status = status;
    this.retryAfterS = retryAfterS;
  }
}

const ADDRESS = "/console/session";
const ends = new EventTarget();

/**
 * The session of this browser; undefined without one. If the page was opened with a sign-in link, that opens it.
 * @throws SignInError, also for a link that cannot be used in a browser without a session; TypeError if the connection
 *   fails
 */
export async function currentSession(): Promise<Session | undefined> {
  const [, link] = /^#sign-in=(.+)$/.exec(location.hash) ?? [];
  if (!link) return openSession();
  // The link is used up, so neither the address nor the history keeps it.
  history.replaceState(history.state, "", location.pathname);
  return signIn(link).catch(async (error: unknown) => (await openSession()) ?? Promise.reject(error));
}

async function openSession(): Promise<Session | undefined> {
  const response = await fetch(ADDRESS, { cache: "no-store" });
  return response.status === 401 ? undefined : sessionOf(response);
}

/** Opens a session. Its cookie is not accessible to scripts. @throws SignInError, TypeError */
export async function signIn(token: string): Promise<Session> {
  const headers = { "content-type": "application/json" };
  return sessionOf(await fetch(ADDRESS, { method: "POST", headers, body: JSON.stringify({ token }) }));
}

/** Ends the session in all tabs. @throws SignInError, TypeError */
export async function signOut(): Promise<void> {
  const response = await fetch(ADDRESS, { method: "DELETE" });
  if (!response.ok) throw await refusal(response);
}

/** Notifies the console that the session has expired. */
export function endSession(): void {
  ends.dispatchEvent(new Event("end"));
}

/** Calls the listener when the session has expired. @returns a function that removes the listener */
export function onSessionEnd(listener: () => void): () => void {
  ends.addEventListener("end", listener);
  return () => ends.removeEventListener("end", listener);
}

async function sessionOf(response: Response): Promise<Session> {
  if (!response.ok) throw await refusal(response);
  const { workspace, workspace_id: workspaceId, expires_at: expiresAt } = await response.json();
  current = workspaceId;
  return { workspace, workspaceId, expiresAt: new Date(expiresAt) };
}

let current = "";

/** Identifier of the workspace of the last session. */
export function currentWorkspace(): string {
  return current;
}

async function refusal(response: Response): Promise<SignInError> {
  const body: unknown = await response.json().catch(() => undefined);
  const message =
    body && typeof body === "object" && "message" in body
      ? String(body.message)
      : "The service did not answer as expected.";
  const wait = Number(response.headers.get("retry-after"));
  return new SignInError(response.status, message, wait > 0 ? wait : undefined);
}
