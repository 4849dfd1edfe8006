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
import type { Verbs } from "../call/route.ts";
import { checkBodyHeaders } from "../rest/routes.ts";
import { type Origin, originOf, requireSameOrigin } from "./origin.ts";

/** Largest body of a sign-in, in bytes. */
const MAX_SIGN_IN = 4_096;

export interface SessionCookie {
  readonly name: string;
  /** Path that the browser sends it to. */
  readonly path: string;
}

export const OWNER_COOKIE: SessionCookie = { name: "chorus_session", path: "/console" };
export const OPERATOR_COOKIE: SessionCookie = { name: "chorus_operator", path: "/console/operator" };

/** Sessions of owners or operators. */
interface Parts<S extends { readonly expiresAt: Date }> {
  readonly sessions: {
    authenticate(secret: string | undefined): Promise<S>;
    close(secret: string | undefined): Promise<void>;
  };
  /** @param source where the attempt comes from */
  signIn(token: string, source: string): Promise<{ session: S; secret: string }>;
  /** What the page is told about a session, besides its end. */
  describe(session: S): object;
  readonly cookie: SessionCookie;
  readonly budget: BodyBudget;
  /** Number of trusted proxies in front of the service. */
  readonly proxies: number;
}

/** Creates the handlers of a path for sessions: show the session, sign in, sign out. */
export function createSessionHandlers<S extends { readonly expiresAt: Date }>(parts: Parts<S>): Verbs {
  const { sessions, cookie, budget, proxies } = parts;
  const secretOf = (request: IncomingMessage) => sessionSecret(request.headers.cookie, cookie);
  return new Map([
    ["GET", { send: show }],
    ["POST", { send: signIn, readsBody: true }],
    ["DELETE", { send: signOut }],
  ]);

  async function show(call: Call): Promise<void> {
    sendSession(call, await sessions.authenticate(secretOf(call.request)));
  }

  async function signIn(call: Call): Promise<void> {
    const { request, response } = call;
    const { source, secure } = requireOwnPage(request);
    checkStatedLength(request.headers["content-length"], MAX_SIGN_IN);
    checkBodyHeaders(request);
    const options = { maxBytes: MAX_SIGN_IN, count: createJsonCounter() };
    const body = await readBody(call, budget, { admin: `sign-in ${source}` }, options);
    const { token } = parseBody(decodeText(body.join())) as { token?: unknown };
    if (typeof token !== "string" || token === "") throw invalid("token", "token must be a token, as text.");
    const { session, secret } = await parts.signIn(token, source);
    response.setHeader("Set-Cookie", cookieText(secret, SESSION_MS / 1_000, secure));
    sendSession(call, session);
  }

  async function signOut({ request, response }: Call): Promise<void> {
    const { secure } = requireOwnPage(request);
    await sessions.close(secretOf(request));
    response.setHeader("Set-Cookie", cookieText("", 0, secure));
    response.writeHead(204, { "Cache-Control": "no-store" }).end();
  }

  /** @throws Failure foreign_origin when a page of another address sent the request */
  function requireOwnPage({ headers, socket }: IncomingMessage): Origin {
    const header = (name: string) => headers[name]?.toString();
    requireSameOrigin(header, proxies);
    return originOf(header, proxies, socket.remoteAddress ?? "");
  }

  function cookieText(secret: string, seconds: number, secure: boolean): string {
    const attributes = `HttpOnly; SameSite=Strict; Path=${cookie.path}; Max-Age=${seconds}`;
    return `${cookie.name}=${secret}; ${attributes}${secure ? "; Secure" : ""}`;
  }

  function sendSession(call: Call, session: S): void {
    sendJson(call, 200, JSON.stringify({ ...parts.describe(session), expires_at: session.expiresAt }));
  }
}

export function sessionSecret(header: string | undefined, { name }: SessionCookie): string | undefined {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
