import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { SESSION_MS, type Session } from "../../accounts/sessions.ts";
import type { Config } from "../../config/config.ts";
import { Failure, invalid } from "../../failure.ts";
import type { Services } from "../../service/services.ts";
import { type BodyBudget, checkBodyHead, parseBody, readBody } from "../rest/body.ts";
import { sendJson } from "../rest/json-response.ts";
import { endIfStalled } from "../rest/sse.ts";
import { loadFiles, sendFile } from "../static-files.ts";
import { type Origin, originOf, requireSameOrigin } from "./origin.ts";

/** Where everything of the console is. */
const CONSOLE = "/console";

/** Where the services of owners are, for the console's pages. */
const RPC = `${CONSOLE}/rpc`;

const COOKIE = "chorus_session";

/** Largest body of a sign-in, in bytes. */
const MAX_SIGN_IN = 4_096;

/** On every response: nothing but the console's own files runs or is loaded, and no other page may frame it. */
const HEADERS: Readonly<Record<string, string>> = {
  "Content-Security-Policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Resource-Policy": "same-origin",
};

const NOT_BUILT = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Chorus console</title></head>
<body><h1>The console is not built</h1><p>Run <code>npm run prepare</code> in the folder of the service, then start the service again.</p></body></html>
`;

export interface ConsoleExchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Whether the caller waits for a go-ahead before it sends its body. */
  readonly expects: boolean;
}

/** What answers a request. */
export interface ConsoleHandler {
  /** Throws Failure. */
  readonly run: (exchange: ConsoleExchange) => Promise<void> | void;
}

export interface Console {
  /** What there is at a path, by HTTP method; undefined when the path is not the console's. It also puts the console's headers on the response. */
  find(path: string, response: ServerResponse): ReadonlyMap<string, ConsoleHandler> | undefined;
}

/**
 * The console on the public listener: its pages, sign-in, and its services. A page holds no secret: the browser keeps the session in a cookie that no
 * script can read and that is sent to these paths alone, from these pages alone.
 * @param rpc serves `/<service>/<method>` by that cookie
 */
export function createConsole(
  services: Pick<Services, "sessions">,
  { console: config, stream }: Pick<Config, "console" | "stream">,
  budget: BodyBudget,
  rpc: RequestListener,
): Console {
  const files = loadFiles(config.folder);
  const index = files.get("/index.html");
  const session = new Map<string, ConsoleHandler>([
    ["GET", { run: whoIsSignedIn }],
    ["POST", { run: signIn }],
    ["DELETE", { run: signOut }],
  ]);
  const calls = new Map<string, ConsoleHandler>([["POST", { run: call }]]);

  return {
    find(path, response) {
      if (path !== CONSOLE && !path.startsWith(`${CONSOLE}/`)) return undefined;
      for (const [name, value] of Object.entries(HEADERS)) response.setHeader(name, value);
      if (path === `${CONSOLE}/session`) return session;
      if (path.startsWith(`${RPC}/`)) return calls;
      return new Map([["GET", { run: (exchange) => page(path.slice(CONSOLE.length) || "/", exchange) }]]);
    },
  };

  /** Paths without a dot are the page's own, which finds out itself what to show. */
  function page(path: string, { request, response }: ConsoleExchange): void {
    const asked = files.get(path);
    if (!asked && /^\/assets\/|\./.test(path)) throw new Failure("not_found");
    const file = asked ?? index;
    if (file) {
      const isHashed = path.startsWith("/assets/");
      const caching = isHashed ? "public, max-age=31536000, immutable" : file === index ? "no-store" : "no-cache";
      sendFile(request, response, file, caching);
      endIfStalled(response, stream.stallMs);
      return;
    }
    response.writeHead(404, { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" });
    response.end(NOT_BUILT);
  }

  function call({ request, response }: ConsoleExchange): void {
    response.setHeader("Cache-Control", "no-store");
    request.url = (request.url ?? "").replace(/^https?:\/\/[^/?]*/i, "").slice(RPC.length);
    rpc(request, response);
  }

  async function signIn({ request, response, expects }: ConsoleExchange): Promise<void> {
    const { source, secure } = checked(request);
    checkBodyHead(request);
    const { text, release } = await readBody(request, budget, () => expects && response.writeContinue(), MAX_SIGN_IN);
    release();
    const { token } = parseBody(text) as { token?: unknown };
    if (typeof token !== "string" || token === "") throw invalid("token", "token must be the workspace's owner token.");
    const { session, secret } = await services.sessions.open(token, source);
    response.setHeader("Set-Cookie", cookie(secret, SESSION_MS / 1_000, secure));
    sendSession(response, session);
  }

  async function whoIsSignedIn({ request, response }: ConsoleExchange): Promise<void> {
    sendSession(response, await services.sessions.authenticate(sessionSecret(request.headers.cookie)));
  }

  async function signOut({ request, response }: ConsoleExchange): Promise<void> {
    const { secure } = checked(request);
    await services.sessions.close(sessionSecret(request.headers.cookie));
    response.setHeader("Set-Cookie", cookie("", 0, secure));
    response.writeHead(204, { "Cache-Control": "no-store" }).end();
  }

  function checked(request: IncomingMessage): Origin {
    const header = (name: string) => request.headers[name]?.toString();
    requireSameOrigin(header, config.proxies);
    return originOf(header, config.proxies, request.socket.remoteAddress ?? "");
  }

  function sendSession(response: ServerResponse, { caller, expiresAt }: Session): void {
    const { workspace, workspaceId } = caller;
    sendJson(response, 200, JSON.stringify({ workspace, workspace_id: workspaceId, expires_at: expiresAt }));
  }
}

/** The secret of a session out of the header `Cookie`. */
export function sessionSecret(header: string | undefined): string | undefined {
  const pairs = (header ?? "").split(";").map((pair) => pair.trim());
  return pairs.find((pair) => pair.startsWith(`${COOKIE}=`))?.slice(COOKIE.length + 1);
}

function cookie(secret: string, seconds: number, secure: boolean): string {
  const attributes = `HttpOnly; SameSite=Strict; Path=${CONSOLE}; Max-Age=${seconds}`;
  return `${COOKIE}=${secret}; ${attributes}${secure ? "; Secure" : ""}`;
}
