import type { IncomingMessage } from "node:http";
import { SESSION_MS, type Session } from "../../accounts/sessions.ts";
import { invalid } from "../../failure.ts";
import type { Services } from "../../service/services.ts";
import type { BodyBudget } from "../body-budget.ts";
import { decodeText, parseBody } from "../decode-request.ts";
import { checkBodyHeaders, readBody } from "../rest/body.ts";
import type { Exchange, Verbs } from "../rest/handler.ts";
import { sendJson } from "../rest/json-response.ts";
import { type Origin, originOf, requireSameOrigin } from "./origin.ts";

const COOKIE = "chorus_session";

/** Largest body of a sign-in, in bytes. */
const MAX_SIGN_IN = 4_096;

interface Parts {
  readonly services: Pick<Services, "sessions" | "signIn">;
  readonly budget: BodyBudget;
  /** Number of trusted proxies in front of the service. */
  readonly proxies: number;
  /** Path that the browser sends the session's cookie to. */
  readonly cookiePath: string;
}

/** Creates the handlers of `/console/session`: show the session, sign in, sign out. */
export function createSessionHandlers({ services, budget, proxies, cookiePath }: Parts): Verbs {
  const { sessions } = services;
  return new Map([
    ["GET", { run: show }],
    ["POST", { run: signIn }],
    ["DELETE", { run: signOut }],
  ]);

  async function show(exchange: Exchange): Promise<void> {
    sendSession(exchange, await sessions.authenticate(sessionSecret(exchange.request.headers.cookie)));
  }

  async function signIn(exchange: Exchange): Promise<void> {
    const { request, response, expectsContinue } = exchange;
    const { source, secure } = requireOwnPage(request);
    checkBodyHeaders(request);
    const proceed = () => expectsContinue && response.writeContinue();
    const { blocks, hold } = await readBody(request, budget, { admin: `sign-in ${source}` }, proceed, MAX_SIGN_IN);
    hold.release();
    const { token } = parseBody(decodeText(blocks.join())) as { token?: unknown };
    if (typeof token !== "string" || token === "") throw invalid("token", "token must be the workspace's owner token.");
    const { session, secret } = await services.signIn(token, source);
    response.setHeader("Set-Cookie", cookie(secret, SESSION_MS / 1_000, secure));
    sendSession(exchange, session);
  }

  async function signOut({ request, response }: Exchange): Promise<void> {
    const { secure } = requireOwnPage(request);
    await sessions.close(sessionSecret(request.headers.cookie));
    response.setHeader("Set-Cookie", cookie("", 0, secure));
    response.writeHead(204, { "Cache-Control": "no-store" }).end();
  }

  /** @throws Failure foreign_origin when a page of another address sent the request */
  function requireOwnPage({ headers, socket }: IncomingMessage): Origin {
    const header = (name: string) => headers[name]?.toString();
    requireSameOrigin(header, proxies);
    return originOf(header, proxies, socket.remoteAddress ?? "");
  }

  function cookie(secret: string, seconds: number, secure: boolean): string {
    const attributes = `HttpOnly; SameSite=Strict; Path=${cookiePath}; Max-Age=${seconds}`;
    return `${COOKIE}=${secret}; ${attributes}${secure ? "; Secure" : ""}`;
  }
}

function sendSession(exchange: Exchange, { caller, expiresAt }: Session): void {
  const { workspace, workspaceId } = caller;
  sendJson(exchange, 200, JSON.stringify({ workspace, workspace_id: workspaceId, expires_at: expiresAt }));
}

/** Reads the secret of a session from the header `Cookie`. */
export function sessionSecret(header: string | undefined): string | undefined {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
}
