import { isPersonSecret } from "../../admin/people/people.ts";
import type { PersonSession } from "../../admin/people/sessions.ts";
import type { Config } from "../../config/config.ts";
import { Failure } from "../../contract/failure.ts";
import type { Authenticate } from "../call/authenticate.ts";
import type { Call } from "../call/call.ts";
import type { Identity } from "../call/identity.ts";
import type { Requirement } from "../call/methods.ts";
import type { Services } from "../call/services.ts";
import { requireSameOrigin } from "./origin.ts";
import { OPERATOR_COOKIE, OWNER_COOKIE, sessionSecret } from "./session.ts";

type Settings = Config["console"];

/** Header in which a page says which workspace it shows, by its identifier. */
const SHOWN = "x-chorus-workspace";

/**
 * Creates the function that authenticates calls of the pages of owners and members, by the session's cookie alone. A
 * request also needs an `Origin` of this address, and Connect's version header, which pages of other sites cannot send.
 * Requests from the playground count for the workspace, under a key of the console. A member needs a role that the
 * method names. A page that shows another workspace than the session has is refused.
 */
export function authenticateOwner(
  { sessions, people }: Pick<Services, "sessions" | "people">,
  { proxies }: Settings,
): Authenticate {
  return async (call, requirement) => {
    requireOwnPage(call, proxies);
    const secret = sessionSecret(call.header("cookie"), OWNER_COOKIE);
    if (people && isPersonSecret(secret)) {
      const session = await people.authenticate(secret);
      requireShown(call, session.shown?.caller.workspaceId);
      return memberOf(session, requirement);
    }
    const { caller, actor } = await sessions.authenticate(secret);
    requireShown(call, caller.workspaceId);
    // The console's key has every scope.
    if ("scope" in requirement) return { caller };
    if (requirement.role === "owner") return { actor };
    throw new Failure("missing_scope", { message: "Only an operator may do this; the console is for owners." });
  };
}

/** The same for the pages of operators. They have no key for requests. */
export function authenticateOperator(
  { operatorSessions, people }: Pick<Services, "operatorSessions" | "people">,
  { proxies }: Settings,
): Authenticate {
  return async (call, requirement) => {
    requireOwnPage(call, proxies);
    const actor = await operatorOf({ operatorSessions, people }, call.header("cookie"));
    if ("role" in requirement) return { actor };
    throw new Failure("missing_scope", { message: "An operator has no key for requests. Sign in as an owner." });
  };
}

/** The operator of a session: one that a token opened, or one of a person. @throws Failure */
async function operatorOf(
  { operatorSessions, people }: Pick<Services, "operatorSessions" | "people">,
  cookies: string | undefined,
) {
  const secret = sessionSecret(cookies, OPERATOR_COOKIE);
  const ofPerson = sessionSecret(cookies, OWNER_COOKIE);
  if (secret !== undefined || !people || !isPersonSecret(ofPerson))
    return (await operatorSessions.authenticate(secret)).actor;
  const { operator } = await people.authenticate(ofPerson);
  if (operator) return operator;
  throw new Failure("missing_scope", { message: "You are no operator. Ask the operators of this service." });
}

/** @throws Failure missing_scope that names the roles which would do */
function memberOf({ actor, shown }: PersonSession, requirement: Requirement): Identity {
  if (!shown) {
    const message = "You are not a member of this workspace. Reload the page to see the workspaces that are yours.";
    throw new Failure("missing_scope", { message });
  }
  const { roles } = requirement;
  if (roles.includes(shown.role)) return "scope" in requirement ? { caller: shown.caller } : { actor };
  const needed = roles.length === 0 ? "Only an operator may do this" : `This needs the role ${roles.join(" or ")}`;
  throw new Failure("missing_scope", { message: `${needed}; your role in the workspace is ${shown.role}.` });
}

/**
 * All tabs and windows of a browser share the session, so one of them may have changed its workspace. The calls of the
 * others are meant for the workspace that they still show.
 * @throws Failure missing_scope
 */
function requireShown(call: Call, workspaceId: string | undefined): void {
  const shown = call.header(SHOWN);
  if (shown === undefined || workspaceId === undefined || shown === workspaceId) return;
  const message = "Another tab or window of this browser has changed the workspace. Reload the page to see that one.";
  throw new Failure("missing_scope", { message });
}

function requireOwnPage(call: Call, proxies: number): void {
  requireSameOrigin((name) => call.header(name), proxies);
}
