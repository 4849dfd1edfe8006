import { SignInError } from "../session/session.ts";

/** The session of a signed-in operator. */
export interface OperatorSession {
  /** Identifier of the operator token, as the audit names it. */
  readonly operator: string;
}

const ADDRESS = "/console/operator/session";
const ends = new EventTarget();

/** The session of this browser; undefined without one. @throws SignInError; TypeError if the connection fails */
export async function currentOperator(): Promise<OperatorSession | undefined> {
  const response = await fetch(ADDRESS, { cache: "no-store" });
  return response.status === 401 ? undefined : sessionOf(response);
}

/** Opens a session. Its cookie is not accessible to scripts. @throws SignInError, TypeError */
export async function signIn(token: string): Promise<OperatorSession> {
  const headers = { "content-type": "application/json" };
  return sessionOf(await fetch(ADDRESS, { method: "POST", headers, body: JSON.stringify({ token }) }));
}

/** Ends the session in all tabs. @throws SignInError, TypeError */
export async function signOut(): Promise<void> {
  const response = await fetch(ADDRESS, { method: "DELETE" });
  if (!response.ok) throw await refusal(response);
}

/** Notifies the page that the session has expired. */
export function endSession(): void {
  ends.dispatchEvent(new Event("end"));
}

/** Calls the listener when the session has expired. @returns a function that removes the listener */
export function onSessionEnd(listener: () => void): () => void {
  ends.addEventListener("end", listener);
  return () => ends.removeEventListener("end", listener);
}

async function sessionOf(response: Response): Promise<OperatorSession> {
  if (!response.ok) throw await refusal(response);
  return response.json();
}

async function refusal(response: Response): Promise<SignInError> {
  const body = await response.json().catch(() => ({}));
  const wait = Number(response.headers.get("retry-after"));
  const message = typeof body?.message === "string" ? body.message : "The service did not answer as expected.";
  return new SignInError(response.status, message, wait > 0 ? wait : undefined);
}
