import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { MemberRoleSchema, roles } from "../../../gen/chorus/v1/options_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { invited, keepInvitation, takeInvitation } from "./invitation.ts";
import { type Membership, type SessionBody, SessionClient, secretOfLink } from "./session-client.ts";

/** The session of an owner who signed in with a token, or of a person. */
export interface Session {
  /** The workspace that is shown. Empty for a person who is a member of none. */
  readonly workspace: string;
  readonly workspaceId: string;
  readonly expiresAt: Date;
  /** Role in the workspace. */
  readonly role: string;
  /** Undefined: a token opened the session. */
  readonly person: SessionBody["person"];
  /** The workspaces of the person. */
  readonly workspaces: readonly Membership[];
  /** Name of the provider through which people sign in; empty without one. */
  readonly provider: string;
}

let current: Session | undefined;

/** Sessions of owners. */
export const owners = new SessionClient<Session>("/console/session", (body) => {
  const { workspace = "", workspace_id: workspaceId = "", expires_at: expiresAt = "", person, role = "owner" } = body;
  const { workspaces = [], provider = "" } = body;
  current = { workspace, workspaceId, expiresAt: new Date(expiresAt), role, person, workspaces, provider };
  return current;
});

/** Identifier of the workspace of the last session. */
export function currentWorkspace(): string {
  return current?.workspaceId ?? "";
}

/** Role of the last session. */
export function currentRole(): string {
  return current?.role ?? "";
}

/** Identifier of the person of the last session; undefined for a token. */
export function currentPerson(): string | undefined {
  return current?.person?.id;
}

/** Whether the session may call a method: an owner may call each, others those whose options name the role. */
export function can(method: DescMethod): boolean {
  const role = currentRole();
  return role === "owner" || getOption(method, roles).some((one) => wordOf(MemberRoleSchema, one) === role);
}

/**
 * The session of this browser; undefined without one. If the page was opened with a sign-in link, that opens it.
 * @throws SignInError, also for a link that cannot be used in a browser without a session; TypeError if the connection
 *   fails
 */
export async function currentSession(): Promise<Session | undefined> {
  keepInvitation();
  const secret = secretOfLink(location.hash);
  if (!secret) return accept(await owners.current());
  // The link is used up, so neither the address nor the history keeps it.
  history.replaceState(history.state, "", location.pathname);
  return owners.signIn(secret).catch(async (error: unknown) => (await owners.current()) ?? Promise.reject(error));
}

/**
 * Uses the invitation with which the page was opened. It waits for a person to sign in through the provider.
 * @throws SignInError for one that was used before or has expired
 */
async function accept(session: Session | undefined): Promise<Session | undefined> {
  if (session && !session.person) return invited() ? undefined : session;
  const invitation = session && takeInvitation();
  return invitation ? owners.signIn(invitation) : session;
}
