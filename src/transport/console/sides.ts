import { isPersonSecret, type People } from "../../admin/people/people.ts";
import type { PersonSession } from "../../admin/people/sessions.ts";
import type { OwnerSession } from "../../admin/sign-in/owner-sessions.ts";
import { Failure } from "../../contract/failure.ts";
import type { BodyBudget } from "../../overload/body-budget.ts";
import type { Verbs } from "../call/route.ts";
import type { Services } from "../call/services.ts";
import { describePerson } from "./people.ts";
import { createSessionHandlers, OPERATOR_COOKIE, OWNER_COOKIE, sessionSecret } from "./session.ts";

interface Settings {
  readonly budget: BodyBudget;
  /** Number of trusted proxies in front of the service. */
  readonly proxies: number;
}

/** The sessions of owners and members: a token, a link or the provider opens one; an invitation adds a workspace. */
export function ownerHandlers(
  { sessions, signIn, people }: Pick<Services, "sessions" | "signIn" | "people">,
  settings: Settings,
): Verbs {
  const secretOf = (cookies: string | undefined) => sessionSecret(cookies, OWNER_COOKIE);
  return createSessionHandlers<OwnerSession | PersonSession>({
    ...settings,
    cookie: OWNER_COOKIE,
    async find(cookies) {
      const secret = secretOf(cookies);
      return people && isPersonSecret(secret) ? people.show(secret) : sessions.authenticate(secret);
    },
    async signIn(token, { source, cookies }) {
      if (!token.startsWith("in_")) return signIn(token, source);
      const secret = secretOf(cookies);
      if (people && isPersonSecret(secret)) return { session: await people.accept(secret, token, source) };
      throw new Failure("unauthenticated", { message: "Sign in through the provider before you use an invitation." });
    },
    async choose(workspace, cookies) {
      if (people) return people.choose(personSecret(secretOf(cookies)), workspace);
      throw new Failure("unauthenticated", { message: "Nobody is signed in through a provider." });
    },
    async close(cookies, back) {
      const secret = secretOf(cookies);
      const url = await people?.signOut(secret, back);
      if (!isPersonSecret(secret)) await sessions.close(secret);
      return { cookie: OWNER_COOKIE, url };
    },
    describe: (session) => ({
      ...("person" in session
        ? describePerson(session)
        : { workspace: session.caller.workspace, workspace_id: session.caller.workspaceId }),
      // Without a provider, nobody can become a member.
      ...(people ? { provider: people.providerName } : {}),
    }),
  });
}

/** The sessions of operators: by a token, or that of a person who is an operator. */
export function operatorHandlers(
  { operatorSessions, operatorSignIn, people }: Pick<Services, "operatorSessions" | "operatorSignIn" | "people">,
  settings: Settings,
): Verbs {
  return createSessionHandlers({
    ...settings,
    cookie: OPERATOR_COOKIE,
    async find(cookies) {
      const secret = sessionSecret(cookies, OPERATOR_COOKIE);
      const person = secret === undefined ? await operatorIn(people, cookies) : undefined;
      if (person) return { operator: person.person.name || person.person.email, expiresAt: person.expiresAt };
      const { actor, expiresAt } = await operatorSessions.authenticate(secret);
      return { operator: actor.id, expiresAt };
    },
    async signIn(token, { source }) {
      const { session, secret } = await operatorSignIn(token, source);
      return { session: { operator: session.actor.id, expiresAt: session.expiresAt }, secret };
    },
    async close(cookies, back) {
      const secret = sessionSecret(cookies, OPERATOR_COOKIE);
      const person = personSecret(sessionSecret(cookies, OWNER_COOKIE));
      if (secret === undefined && people && person !== undefined)
        return { cookie: OWNER_COOKIE, url: await people.signOut(person, back) };
      await operatorSessions.close(secret);
      return { cookie: OPERATOR_COOKIE };
    },
    describe: ({ operator }) => ({ operator }),
  });
}

/** The session of a person who is an operator; undefined: there is none, so that the page asks for a token. */
async function operatorIn(people: People | undefined, cookies: string | undefined): Promise<PersonSession | undefined> {
  const secret = personSecret(sessionSecret(cookies, OWNER_COOKIE));
  if (!people || secret === undefined) return undefined;
  const session = await people.authenticate(secret);
  return session.operator && session;
}

function personSecret(secret: string | undefined): string | undefined {
  return isPersonSecret(secret) ? secret : undefined;
}
