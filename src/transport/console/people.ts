import type { People } from "../../admin/people/people.ts";
import type { Attempt } from "../../admin/people/provider.ts";
import type { PersonSession } from "../../admin/people/sessions.ts";
import { Failure } from "../../contract/failure.ts";
import type { Call } from "../call/call.ts";
import { sendJson } from "../call/json-reply.ts";
import type { Route, Verbs } from "../call/route.ts";
import { addressOf, originOf } from "./origin.ts";
import { cookieText, OPERATOR_COOKIE, OWNER_COOKIE, type SessionCookie, sessionSecret } from "./session.ts";

/** Path at which a sign-in begins. The provider sends the browser to `done` below it. */
const SIGN_IN = "/console/sign-in";
const DONE = `${SIGN_IN}/done`;

/** Time for which a browser keeps an attempt, in seconds. */
const ATTEMPT_S = 600;
const ATTEMPT_PREFIX = "chorus_sign_in_";
/**
 * Most attempts that a browser keeps, and most characters of those before the newest. One more ends the oldest, so that
 * the header of cookies stays short: some proxies refuse one of 8 KiB.
 */
const MAX_ATTEMPTS = 4;
const MAX_KEPT = 3_000;

/** Paths of pages to which a sign-in leads back. One names a user by up to 128 characters of any script. */
const PAGE = /^\/console(?:[/?][\w\-./?=&%:,+~*]{0,2000})?$/;

/**
 * Creates the routes of the sign-in through the OpenID provider: the name of the provider, the beginning, the end.
 * @param people undefined: no provider is configured
 */
export function personRoutes(people: People | undefined, proxies: number): [path: string, verbs: Verbs][] {
  const provider = { send: (call: Call) => sendJson(call, 200, JSON.stringify({ provider: people?.providerName })) };
  const found: [string, Route][] = [[`${SIGN_IN}/provider`, provider]];
  if (people) {
    found.push([SIGN_IN, { send: (call) => begin(people, call, proxies) }]);
    found.push([DONE, { send: (call) => finish(people, call, proxies) }]);
  }
  return found.map(([path, route]) => [path, new Map([["GET", route]])]);
}

async function begin(people: People, call: Call, proxies: number): Promise<void> {
  const { secure, address } = whereOf(call, proxies);
  const wanted = new URLSearchParams(call.query).get("to") ?? "";
  const to = PAGE.test(wanted) ? wanted : "/console";
  try {
    const { url, attempt } = await people.begin(new URL(DONE, address));
    const kept = [attempt.state, attempt.nonce, attempt.verifier, Buffer.from(to).toString("base64url")].join(".");
    const ended = oldestOf(attemptsOf(call)).map(({ cookie }) => cookieText(cookie, "", 0, secure));
    redirect(call, url.href, [cookieText(attemptCookie(attempt.state), kept, ATTEMPT_S, secure), ...ended]);
  } catch (error) {
    redirect(call, failedPage(to, error), []);
  }
}

async function finish(people: People, call: Call, proxies: number): Promise<void> {
  const { secure, address, source } = whereOf(call, proxies);
  const cookie = attemptCookie(new URLSearchParams(call.query).get("state") ?? "");
  const { attempt, to } = readAttempt(sessionSecret(call.header("cookie"), cookie));
  const forget = cookieText(cookie, "", 0, secure);
  try {
    const current = new URL(`${DONE}?${call.query}`, address);
    if (!attempt) throw new Failure("unauthenticated", { message: "The sign-in was not begun in this browser." });
    const { session, secret } = await people.finish(current, attempt, source);
    const seconds = Math.ceil((session.expiresAt.getTime() - Date.now()) / 1_000);
    // A session that a token opened on the operator's side ends there, so that it does not hide the person's.
    const cookies = [cookieText(OWNER_COOKIE, secret, seconds, secure), cookieText(OPERATOR_COOKIE, "", 0, secure)];
    redirect(call, pageOf(to, session), [...cookies, forget]);
  } catch (error) {
    redirect(call, failedPage(to, error), [forget]);
  }
}

/** The page that a sign-in leads to. One with `?invited` uses an invitation, which makes the person a member. */
function pageOf(to: string, { operator, workspaces }: PersonSession): string {
  const isOperators = /^\/console\/operator(?![\w-])/.test(to);
  if (isOperators && !operator) return `${to}#sign-in-failed=not_operator`;
  const isMember = workspaces.length > 0 || to.endsWith("?invited");
  return operator && !isMember && !isOperators ? "/console/operator" : to;
}

/** The page that says why a sign-in failed. Its code is in the fragment, so that no page of another site gets it. */
function failedPage(to: string, error: unknown): string {
  const kind = error instanceof Failure ? error.kind : "internal";
  const code = { unauthenticated: "refused", upstream_failed: "no_provider", rate_limited: "too_many" }[kind as string];
  return `${to}#sign-in-failed=${code ?? "busy"}`;
}

/**
 * Keeps an attempt in the browser that began it. Each has a cookie of its own, because several tabs may sign in at the
 * same time. The provider's page leads back to the service, so the browser must send it with requests that come from
 * another site.
 */
function attemptCookie(state: string): SessionCookie {
  return { name: ATTEMPT_PREFIX + state.replace(/[^\w-]/g, "").slice(0, 8), path: SIGN_IN, sameSite: "Lax" };
}

interface Kept {
  readonly cookie: SessionCookie;
  /** Characters that the browser sends. */
  readonly length: number;
}

/** The attempts that the browser keeps. Browsers send those that they got first first. */
function attemptsOf(call: Call): Kept[] {
  const pairs = new RegExp(`(?<=^|; *)${ATTEMPT_PREFIX}([\\w-]*)=[^;]*`, "g");
  const found = (call.header("cookie") ?? "").matchAll(pairs);
  return [...found].map(([{ length }, state = ""]) => ({ cookie: attemptCookie(state), length }));
}

/** The attempts that one more ends. */
function oldestOf(attempts: readonly Kept[]): readonly Kept[] {
  let first = attempts.length;
  let length = 0;
  for (const attempt of attempts.toReversed().slice(0, MAX_ATTEMPTS - 1)) {
    length += attempt.length;
    if (length > MAX_KEPT) break;
    first -= 1;
  }
  return attempts.slice(0, first);
}

function readAttempt(cookie: string | undefined): { attempt: Attempt | undefined; to: string } {
  const [state = "", nonce = "", verifier = "", page = ""] = (cookie ?? "").split(".");
  const to = Buffer.from(page, "base64url").toString();
  const isWhole = [state, nonce, verifier].every((part) => /^[\w-]{43}$/.test(part));
  return { attempt: isWhole ? { state, nonce, verifier } : undefined, to: PAGE.test(to) ? to : "/console" };
}

function whereOf(call: Call, proxies: number) {
  const header = (name: string) => call.header(name);
  const { source, secure } = originOf(header, proxies, call.request.socket.remoteAddress ?? "");
  return { source, secure, address: addressOf(header, proxies, secure) };
}

function redirect({ response }: Call, location: string, cookies: readonly string[]): void {
  if (cookies.length > 0) response.setHeader("Set-Cookie", cookies);
  response.writeHead(303, { Location: location, "Cache-Control": "no-store" }).end();
}

/** What the page is told about the session of a person. */
export function describePerson({ person, operator, actor, shown, workspaces }: PersonSession): object {
  const { name, email } = person;
  return {
    workspace: shown?.caller.workspace ?? "",
    workspace_id: shown?.caller.workspaceId ?? "",
    person: { id: actor.id, name, email, operator: operator !== undefined },
    role: shown?.role ?? "",
    workspaces,
  };
}
