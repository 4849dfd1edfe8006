import type { IncomingMessage } from "node:http";
import { SESSION_MS } from "../../admin/sign-in/sessions.ts";
import { invalid } from "../../contract/failure.ts";
import type { BodyBudget } from "../call/body-budget.ts";
import { decodeText, parseBody } from "../call/decode-request.ts";
import { checkBodyHeaders, readBody } from "../rest/body.ts";
import type { Exchange, Verbs } from "../rest/handler.ts";
import { sendJson } from "../rest/json-response.ts";
import { type Origin, originOf, requireSameOrigin } from "./origin.ts";

/** Largest body of a sign-in, in bytes. */
const MAX_SIGN_IN = 4_096;

/** A cookie that holds the secret of a session. */
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
    ["GET", { run: show }],
    ["POST", { run: signIn }],
    ["DELETE", { run: signOut }],
  ]);

  async function show(exchange: Exchange): Promise<void> {
    sendSession(exchange, await sessions.authenticate(secretOf(exchange.request)));
  }

  async function signIn(exchange: Exchange): Promise<void> {
    const { request, response, expectsContinue } = exchange;
    const { source, secure } = requireOwnPage(request);
    checkBodyHeaders(request);
    const proceed = () => expectsContinue && response.writeContinue();
    const { blocks, hold } = await readBody(request, budget, { admin: `sign-in ${source}` }, proceed, MAX_SIGN_IN);
    hold.release();
    const { token } = parseBody(decodeText(blocks.join())) as { token?: unknown };
    if (typeof token !== "string" || token === "") throw invalid("token", "token must be a token, as text.");
    const { session, secret } = await parts.signIn(token, source);
    response.setHeader("Set-Cookie", cookieText(secret, SESSION_MS / 1_000, secure));
    sendSession(exchange, session);
  }

  async function signOut({ request, response }: Exchange): Promise<void> {
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

  function sendSession(exchange: Exchange, session: S): void {
    sendJson(exchange, 200, JSON.stringify({ ...parts.describe(session), expires_at: session.expiresAt }));
  }
}

/** Reads the secret of a session from the header `Cookie`. */
export function sessionSecret(header: string | undefined, { name }: SessionCookie): string | undefined {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${name}=`))?.slice(name.length + 1);
}
