import type { IncomingMessage } from "node:http";
import { SESSION_MS } from "../../admin/sign-in/sessions.ts";
import { invalid } from "../../contract/failure.ts";
import { checkStatedLength } from "../../overload/body-bounds.ts";
import type { BodyBudget } from "../../overload/body-budget.ts";
import { createJsonCounter } from "../../overload/value-count.ts";
import type { Call } from "../call/call.ts";
import { decodeText, parseBody } from "../call/json-body.ts";
import { sendJson } from "../call/json-reply.ts";
import { readBody } from "../call/receive.ts";
import type { Route, Verbs } from "../call/route.ts";
import { checkBodyHeaders } from "../rest/routes.ts";
import { addressOf, type Origin, originOf, requireSameOrigin } from "./origin.ts";

/** Largest body of a sign-in, in bytes. */
const MAX_SIGN_IN = 4_096;

export interface SessionCookie {
  readonly name: string;
  /** Path that the browser sends it to. */
  readonly path: string;
  /** Whether requests that come from other sites have it. Default: never. */
  readonly sameSite?: "Strict" | "Lax";
}

export const OWNER_COOKIE: SessionCookie = { name: "chorus_session", path: "/console" };
export const OPERATOR_COOKIE: SessionCookie = { name: "chorus_operator", path: "/console/operator" };

/** Sessions of one side of the console. */
interface Parts<S extends { readonly expiresAt: Date }> {
  /** Finds the session of a request by its cookies. @throws Failure unauthenticated */
  find(cookies: string | undefined): Promise<S>;
  /**
   * @param attempt.source where the attempt comes from
   * @param attempt.cookies of the request
   * @returns no secret when the session goes on
   */
  signIn(token: string, attempt: { source: string; cookies: string | undefined }): Promise<SignedIn<S>>;
  /** Changes the workspace of a session. Undefined: sessions have one workspace. */
  choose?(workspace: string, cookies: string | undefined): Promise<S>;
  /**
   * Ends a session.
   * @param back where the provider leads the browser back to
   * @returns its cookie, and where the browser goes to sign out at the provider
   */
  close(cookies: string | undefined, back: URL): Promise<{ cookie: SessionCookie; url?: URL | undefined }>;
  /** What the page is told about a session, besides its end. */
  describe(session: S): object;
  readonly cookie: SessionCookie;
  readonly budget: BodyBudget;
  /** Number of trusted proxies in front of the service. */
  readonly proxies: number;
}

interface SignedIn<S> {
  readonly session: S;
  readonly secret?: string;
}

/** Creates the handlers of a path for sessions: show the session, sign in, choose a workspace, sign out. */
export function createSessionHandlers<S extends { readonly expiresAt: Date }>(parts: Parts<S>): Verbs {
  const { cookie, budget, proxies, choose: chooseWorkspace } = parts;
  const verbs = new Map<string, Route>([
    ["GET", { send: show }],
    ["POST", { send: signIn, readsBody: true }],
    ["DELETE", { send: signOut }],
  ]);
  if (chooseWorkspace) verbs.set("PUT", { send: choose, readsBody: true });
  return verbs;

  async function show(call: Call): Promise<void> {
    sendSession(call, await parts.find(call.header("cookie")));
  }

  async function signIn(call: Call): Promise<void> {
    const { source, secure } = requireOwnPage(call.request);
    const token = await readMember(call, "token", source);
    const { session, secret } = await parts.signIn(token, { source, cookies: call.header("cookie") });
    if (secret !== undefined)
      call.response.setHeader("Set-Cookie", cookieText(cookie, secret, SESSION_MS / 1_000, secure));
    sendSession(call, session);
  }

  async function choose(call: Call): Promise<void> {
    const { source } = requireOwnPage(call.request);
    const workspace = await readMember(call, "workspace", source);
    const session = await chooseWorkspace?.(workspace, call.header("cookie"));
    if (session) sendSession(call, session);
  }

  async function signOut(call: Call): Promise<void> {
    const { request, response } = call;
    const { secure } = requireOwnPage(request);
    const back = new URL(
      cookie.path,
      addressOf((name) => call.header(name), proxies, secure),
    );
    const { cookie: ended, url } = await parts.close(call.header("cookie"), back);
    response.setHeader("Set-Cookie", cookieText(ended, "", 0, secure));
    if (url) sendJson(call, 200, JSON.stringify({ sign_out_url: url }));
    else response.writeHead(204, { "Cache-Control": "no-store" }).end();
  }

  /** Reads the body, an object with one member that is a text. @throws Failure */
  async function readMember(call: Call, name: string, source: string): Promise<string> {
    const { request } = call;
    checkStatedLength(request.headers["content-length"], MAX_SIGN_IN);
    checkBodyHeaders(request);
    const options = { maxBytes: MAX_SIGN_IN, count: createJsonCounter() };
    const body = await readBody(call, budget, { admin: `sign-in ${source}` }, options);
    const { [name]: value } = parseBody(decodeText(body.join())) as Record<string, unknown>;
    if (typeof value !== "string" || value === "") throw invalid(name, `${name} must be a ${name}, as text.`);
    return value;
  }

  /** @throws Failure foreign_origin when a page of another address sent the request */
  function requireOwnPage({ headers, socket }: IncomingMessage): Origin {
    const header = (name: string) => headers[name]?.toString();
    requireSameOrigin(header, proxies);
    return originOf(header, proxies, socket.remoteAddress ?? "");
  }

  function sendSession(call: Call, session: S): void {
    sendJson(call, 200, JSON.stringify({ ...parts.describe(session), expires_at: session.expiresAt }));
  }
}

/** The value of `Set-Cookie`. @param seconds life of the cookie; 0 removes it */
export function cookieText(cookie: SessionCookie, secret: string, seconds: number, secure: boolean): string {
  const { name, path, sameSite = "Strict" } = cookie;
  const attributes = `HttpOnly; SameSite=${sameSite}; Path=${path}; Max-Age=${seconds}`;
  return `${name}=${secret}; ${attributes}${secure ? "; Secure" : ""}`;
}

export function sessionSecret(header: string | undefined, { name }: SessionCookie): string | undefined {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
