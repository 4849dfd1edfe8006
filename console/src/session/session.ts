/** Who is signed in. */
export interface Session {
  readonly workspace: string;
  readonly workspaceId: string;
  readonly expiresAt: Date;
}

/** What the service said instead of a session. */
export class SignInError extends Error {
  readonly status: number;
  /** Seconds after which another attempt makes sense; undefined when waiting does not help. */
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

/** The session of this browser; undefined when nobody is signed in. @throws SignInError or TypeError when the service cannot say. */
export async function currentSession(): Promise<Session | undefined> {
  const response = await fetch(ADDRESS, { cache: "no-store" });
  return response.status === 401 ? undefined : sessionOf(response);
}

/** Opens a session; the cookie that holds it is out of reach for scripts. @throws SignInError, TypeError */
export async function signIn(token: string): Promise<Session> {
  const headers = { "content-type": "application/json" };
  return sessionOf(await fetch(ADDRESS, { method: "POST", headers, body: JSON.stringify({ token }) }));
}

/** Ends the session, here and in every tab. @throws SignInError, TypeError */
export async function signOut(): Promise<void> {
  const response = await fetch(ADDRESS, { method: "DELETE" });
  if (!response.ok) throw await refusal(response);
}

/** Tells the console that the service no longer knows the session. */
export function endSession(): void {
  ends.dispatchEvent(new Event("end"));
}

/** Calls the listener whenever the session turns out to be over. @returns what ends the listening */
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

/** Identifier of the workspace that was signed in to last. */
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
