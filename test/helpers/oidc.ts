import { generateKeyPairSync, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider, { type Configuration, type JWK } from "oidc-provider";
import type { Browser } from "./browser.ts";
import type { Lifetime } from "./lifetime.ts";

/** Claims of a person by their subject. A test may change them; `undefined` claims end with the next refresh. */
export type Accounts = Map<string, Record<string, unknown>>;

export interface TestProvider {
  readonly issuer: string;
  readonly accounts: Accounts;
  /** Variables of a service that signs people in here. */
  readonly env: Record<string, string>;
  /** Answers every request with 503, as a provider that is down behind its proxy. */
  isDown: boolean;
  /** Answers with 503 at the userinfo endpoint only. */
  isUserinfoDown: boolean;
  /** Answers with 503 where its keys are only. */
  areKeysDown: boolean;
  /** Members that it leaves out of its metadata, and of what its token endpoint returns to a grant. */
  readonly omits: Record<"metadata" | "authorization_code" | "refresh_token", string[]>;
  /** Replaces the key that signs ID tokens, and forgets who is signed in. */
  rotateKey(): void;
}

export const CLIENT = { id: "chorus", secret: "secret-of-chorus" };

/**
 * Starts a certified OpenID provider on this machine, at a name that is another site than the service. A person signs
 * in by entering the subject. Every redirect address on 127.0.0.1 is registered.
 */
export async function startProvider(t: Lifetime, changes: Partial<Configuration> = {}): Promise<TestProvider> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
  const accounts: Accounts = new Map();
  const create = () => {
    const provider = createProvider(issuer, accounts, changes);
    provider.use(async (context, next) => {
      await next();
      const isMetadata = context.path === "/.well-known/openid-configuration";
      const kind = isMetadata ? "metadata" : (context.oidc?.params?.grant_type as keyof TestProvider["omits"]);
      // Some providers name a default port or write capital letters, which no URL object keeps.
      const { body } = context as { body: { token_endpoint: string } };
      if (isMetadata) body.token_endpoint = body.token_endpoint.replace("localhost", "LOCALHOST");
      for (const name of started.omits[kind] ?? []) delete (context.body as Record<string, unknown>)[name];
    });
    return provider.callback();
  };
  let serve = create();
  const started: TestProvider = {
    issuer,
    accounts,
    isDown: false,
    isUserinfoDown: false,
    areKeysDown: false,
    omits: { metadata: [], authorization_code: [], refresh_token: [] },
    rotateKey: () => {
      serve = create();
    },
    env: {
      CHORUS_OIDC_ISSUER: issuer,
      CHORUS_OIDC_CLIENT_ID: CLIENT.id,
      CHORUS_OIDC_CLIENT_SECRET: CLIENT.secret,
      CHORUS_OIDC_OPERATORS: "groups=operators",
      CHORUS_OIDC_NAME: "Example",
      CHORUS_OIDC_GROUPS: JSON.stringify({
        leads: { default: "owner" },
        engineering: { default: "developer" },
        finance: { default: "billing" },
        guests: { default: "viewer" },
      }),
    },
  };
  server.on("request", (request, response) => {
    const { isUserinfoDown, areKeysDown } = started;
    const isDown = (isUserinfoDown && request.url === "/me") || (areKeysDown && request.url === "/jwks");
    if (isDown || started.isDown) response.writeHead(503).end();
    else serve(request, response);
  });
  t.onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return started;
}

function createProvider(issuer: string, accounts: Accounts, changes: Partial<Configuration>): Provider {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const key = { ...privateKey.export({ format: "jwk" }), kid: randomUUID(), use: "sig", alg: "RS256" };
  const [method = "client_secret_post"] = [...(changes.clientAuthMethods ?? [])];
  const provider = new Provider(issuer, {
    jwks: { keys: [key as JWK] },
    clients: [
      {
        client_id: CLIENT.id,
        client_secret: CLIENT.secret,
        token_endpoint_auth_method: method,
        grant_types: ["authorization_code", "refresh_token"],
        redirect_uris: ["http://127.0.0.1/console/sign-in/done"],
        post_logout_redirect_uris: ["http://127.0.0.1/console", "http://127.0.0.1/console/operator"],
      },
    ],
    claims: { openid: ["sub"], profile: ["name", "groups"], email: ["email", "email_verified"] },
    scopes: ["openid", "offline_access", "profile", "email"],
    findAccount(_, id) {
      const claims = accounts.get(id);
      return claims && { accountId: id, claims: () => ({ sub: id, ...claims }) };
    },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    cookies: { keys: ["test"] },
    ttl: {
      Interaction: 3_600,
      Session: 86_400,
      Grant: 86_400,
      AccessToken: 3_600,
      RefreshToken: 86_400,
      IdToken: 3_600,
    },
    features: { devInteractions: { enabled: true } },
    ...changes,
  });
  // Listeners of tests have free ports.
  const allow = (own: readonly string[] | undefined, uri: string) =>
    own?.includes(uri.replace(/(127\.0\.0\.1):\d+/, "$1")) ?? false;
  provider.Client.prototype.redirectUriAllowed = function (uri: string) {
    return allow(this.redirectUris, uri);
  };
  provider.Client.prototype.postLogoutRedirectUriAllowed = function (uri: string) {
    return allow(this.postLogoutRedirectUris, uri);
  };
  return provider;
}

/**
 * Walks through the provider's pages as a browser without scripts: signs in as the subject and consents.
 * @param start address of the authorization request
 * @returns where the provider sends the browser in the end
 */
export async function walkProvider(start: string, subject: string): Promise<string> {
  const cookies = new Map<string, string>();
  let next = new URL(start);
  for (let step = 0; step < 12; step += 1) {
    if (next.hostname === "127.0.0.1") return next.href;
    const headers = { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") };
    let response = await fetch(next, { headers, redirect: "manual" });
    keep(cookies, response);
    if (response.status === 200) {
      const [, action = ""] = /action="([^"]+)"/.exec(await response.text()) ?? [];
      const isLogin = step < 3;
      const body = new URLSearchParams(
        isLogin ? { prompt: "login", login: subject, password: "x" } : { prompt: "consent" },
      );
      response = await fetch(new URL(action, next), {
        method: "POST",
        headers: { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") },
        body,
        redirect: "manual",
      });
      keep(cookies, response);
    }
    const location = response.headers.get("location");
    if (!location) throw new Error(`the provider answered ${response.status} at ${next.pathname}`);
    next = new URL(location, next);
  }
  throw new Error("the provider has too many pages");
}

function keep(cookies: Map<string, string>, response: Response): void {
  for (const line of response.headers.getSetCookie()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
}

/**
 * Signs a person in at the console, in a browser that then has the cookie of the session.
 * @returns where the service sends the browser in the end
 */
export async function signInAs(browser: Browser, subject: string, to = "/console"): Promise<string> {
  const begun = await browser.fetch(`/console/sign-in?to=${encodeURIComponent(to)}`, { redirect: "manual" });
  const back = new URL(await walkProvider(begun.headers.get("location") ?? "", subject));
  const done = await browser.fetch(back.pathname + back.search, { redirect: "manual" });
  return done.headers.get("location") ?? "";
}
