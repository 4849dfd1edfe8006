import type { Configuration, ServerMetadata, TokenEndpointResponse, TokenEndpointResponseHelpers } from "openid-client";
import type { OidcConfig } from "../../config/oidc.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure } from "../../contract/failure.ts";
import { type Claims, givesSame } from "./claims.ts";
import { providerFailure, UNAVAILABLE } from "./provider-failure.ts";

/** Timeout of one call of the provider, in seconds. */
const TIMEOUT_S = 5;

/** Difference between the clocks of the provider and the service that is accepted, in seconds. */
const CLOCK_TOLERANCE_S = 60;

/**
 * Time for which the metadata of the provider are used, in milliseconds. A sign-in begins with metadata that were just
 * read, so that the page can say when the provider is down; the time bounds what strangers cause there.
 */
const METADATA_MS = { begin: 10_000, other: 600_000 };

/** What a browser keeps between the two halves of a sign-in, so that only this browser can end it. */
export interface Attempt {
  readonly state: string;
  readonly nonce: string;
  /** Code verifier of PKCE (RFC 7636). */
  readonly verifier: string;
}

/** What the provider gives at a sign-in, to ask again later. */
export interface ProviderTokens {
  readonly access: string;
  /** Time from which the access token is not valid, in milliseconds since 1970; undefined: not known. */
  readonly accessEndsAt?: number;
  readonly refresh?: string;
  readonly id: string;
  /** Whether the person has rights that only the ID token gave, so that an answer without one cannot confirm them. */
  readonly needsIdToken?: boolean;
}

export interface SignedIn {
  readonly claims: Claims;
  readonly tokens: ProviderTokens;
}

/** What a refresh gives. */
export interface Renewed {
  readonly tokens: ProviderTokens;
  /** Of a new ID token; undefined: there is none. */
  readonly claims?: Claims | undefined;
  /** Why the new ID token could not be checked. The refresh token is new all the same. */
  readonly failure?: Failure;
}

export type Provider = ReturnType<typeof createProvider>;

type Oidc = typeof import("openid-client");

/** The library, with what is known of the provider. */
interface Connection {
  readonly oidc: Oidc;
  readonly configuration: Configuration;
  readonly metadata: ServerMetadata;
}

/**
 * Creates a provider that `openid-client` speaks with: authorization code with PKCE, state and nonce. Its metadata are
 * read when they are needed, so that the service starts without it. Signatures of ID tokens are checked with keys that
 * are read at that time, so a key that the provider has changed is never missing. Methods throw Failure
 * `upstream_failed` while the provider cannot be used.
 */
export function createProvider(config: OidcConfig, clock: Clock) {
  const connect = createConnect(config, clock);
  return {
    /** @returns where to send the browser. @param callback address that the provider sends it back to */
    begin: (callback: URL, { state, nonce, verifier }: Attempt) =>
      guarded(async () => {
        const { oidc, configuration } = await connect(METADATA_MS.begin);
        return oidc.buildAuthorizationUrl(configuration, {
          ...config.parameters,
          redirect_uri: callback.href,
          scope: config.scopes,
          state,
          nonce,
          code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
          code_challenge_method: "S256",
        });
      }),

    /** Ends a sign-in. @param current address that the browser was sent back to. @throws Failure unauthenticated */
    finish: (current: URL, { state, nonce, verifier }: Attempt) =>
      guarded(async () => {
        const connection = await connect();
        const tokens = await connection.oidc.authorizationCodeGrant(connection.configuration, current, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: verifier,
          idTokenExpected: true,
        });
        const claims = tokens.claims();
        if (!claims) throw new Failure("unauthenticated", { message: "The identity provider sent no ID token." });
        return readClaims(connection, config, tokensOf(tokens, clock), claims);
      }),

    /** Asks for new tokens. @returns undefined when the provider no longer answers for the person */
    renew: (tokens: ProviderTokens): Promise<Renewed | undefined> =>
      unlessRefused(async () => refresh(await connect(), tokens, clock)),

    /**
     * Asks for the claims again.
     * @returns undefined when the provider no longer answers for the person, or does not say all that gave their rights
     */
    confirm: ({ tokens, claims, failure }: Renewed, subject: string): Promise<SignedIn | undefined> =>
      unlessRefused(async () => {
        if (failure) throw failure;
        // A refresh may return no ID token (OpenID Connect Core 1.0, section 12.2). That ends no group.
        if (!claims && tokens.needsIdToken) return undefined;
        const said = claims ?? { sub: subject };
        return said.sub === subject ? await readClaims(await connect(), config, tokens, said) : undefined;
      }),

    /** @returns where the browser signs out at the provider; undefined: the provider has no such address */
    signOutUrl: (tokens: ProviderTokens, back: URL) =>
      guarded(async () => {
        const { oidc, configuration, metadata } = await connect();
        if (metadata.end_session_endpoint === undefined) return undefined;
        const parameters = { id_token_hint: tokens.id, post_logout_redirect_uri: back.href };
        return oidc.buildEndSessionUrl(configuration, parameters);
      }),
  };
}

/** @returns a function that makes a configuration of the library, with keys that are not read yet, from metadata */
function createConnect(config: OidcConfig, clock: Clock): (maxAgeMs?: number) => Promise<Connection> {
  let known: { readonly metadata: ServerMetadata; readonly readAt: number } | undefined;
  let reading: Promise<ServerMetadata> | undefined;
  // Only an issuer on this machine may have an http:// address.
  const isInsecure = config.issuer.startsWith("http://");

  function clientOf(oidc: Oidc) {
    // The library uses the clock of the process.
    const skew = Math.round((clock() - Date.now()) / 1_000);
    return { [oidc.clockTolerance]: CLOCK_TOLERANCE_S, [oidc.clockSkew]: skew };
  }

  /** Discovery needs none, so the metadata may be unknown. */
  function authenticationOf(oidc: Oidc, metadata?: ServerMetadata) {
    if (config.clientSecret === undefined) return oidc.None();
    // All providers of docs/people.md take both. One that names none takes client_secret_basic (OpenID Connect
    // Discovery 1.0, section 3).
    const isPost = metadata?.token_endpoint_auth_methods_supported?.includes("client_secret_post") ?? false;
    return isPost ? oidc.ClientSecretPost(config.clientSecret) : oidc.ClientSecretBasic(config.clientSecret);
  }

  async function discover(oidc: Oidc): Promise<ServerMetadata> {
    const options = { timeout: TIMEOUT_S, execute: isInsecure ? [oidc.allowInsecureRequests] : [] };
    const { clientId, issuer } = config;
    const found = await oidc
      .discovery(new URL(issuer), clientId, clientOf(oidc), authenticationOf(oidc), options)
      .catch((cause: unknown) => {
        throw new Failure("upstream_failed", { message: UNAVAILABLE, cause });
      });
    const metadata = found.serverMetadata();
    known = { metadata, readAt: clock() };
    return metadata;
  }

  return async (maxAgeMs = METADATA_MS.other) => {
    const oidc = await import("openid-client");
    const isFresh = known !== undefined && clock() - known.readAt < maxAgeMs;
    if (!isFresh) reading ??= discover(oidc).finally(() => (reading = undefined));
    const metadata = isFresh && known ? known.metadata : await reading;
    if (!metadata) throw new Error("no metadata was read");
    const authentication = authenticationOf(oidc, metadata);
    const configuration = new oidc.Configuration(metadata, config.clientId, clientOf(oidc), authentication);
    configuration.timeout = TIMEOUT_S;
    if (isInsecure) oidc.allowInsecureRequests(configuration);
    oidc.enableNonRepudiationChecks(configuration);
    return { oidc, configuration, metadata };
  };
}

async function refresh(
  { oidc, configuration, metadata }: Connection,
  tokens: ProviderTokens,
  clock: Clock,
): Promise<Renewed | undefined> {
  // Where the end is not known, the userinfo endpoint says whether the token is valid.
  const { accessEndsAt = metadata.userinfo_endpoint ? Number.POSITIVE_INFINITY : 0 } = tokens;
  if (tokens.refresh === undefined) return accessEndsAt > clock() ? { tokens } : undefined;
  const received = watchRefreshToken(oidc, configuration);
  let next: TokenEndpointResponse & TokenEndpointResponseHelpers;
  try {
    next = await oidc.refreshTokenGrant(configuration, tokens.refresh);
  } catch (error) {
    const failure = providerFailure(error);
    const refresh = received();
    // The earlier refresh token may be used up, although the keys for the ID token could not be read.
    if (refresh !== undefined && failure.kind === "upstream_failed") return { tokens: { ...tokens, refresh }, failure };
    throw failure;
  }
  const { needsIdToken = false } = tokens;
  return { tokens: { ...tokensOf(next, clock, tokens), needsIdToken }, claims: next.claims() };
}

/**
 * @param configuration of one refresh, which posts to the token endpoint alone
 * @returns a function that returns the refresh token that the token endpoint has sent; undefined: none
 */
function watchRefreshToken(oidc: Oidc, configuration: Configuration): () => string | undefined {
  let received: unknown;
  configuration[oidc.customFetch] = async (url, options) => {
    const response = await fetch(url, options as RequestInit);
    if (options.method === "POST" && response.ok) {
      const body: unknown = await response
        .clone()
        .json()
        .catch(() => undefined);
      received = Object(body).refresh_token;
    }
    return response;
  };
  return () => (typeof received === "string" ? received : undefined);
}

/**
 * Adds what the userinfo endpoint says: many providers give groups only there, others only in the ID token.
 * @param claims of the ID token; without one, only the subject
 */
async function readClaims(
  { oidc, configuration, metadata }: Connection,
  config: OidcConfig,
  tokens: ProviderTokens,
  claims: Claims,
): Promise<SignedIn> {
  const { sub } = claims;
  const hasInfo = metadata.userinfo_endpoint !== undefined;
  const info = hasInfo ? await oidc.fetchUserInfo(configuration, tokens.access, sub) : { sub };
  const all = { ...claims, ...info };
  return { tokens: { ...tokens, needsIdToken: !givesSame(info, all, config) }, claims: all };
}

/** @param earlier tokens that stay valid where the response has no new ones */
function tokensOf(
  response: TokenEndpointResponse & TokenEndpointResponseHelpers,
  clock: Clock,
  earlier?: ProviderTokens,
): ProviderTokens {
  const refresh = response.refresh_token ?? earlier?.refresh;
  const seconds = response.expiresIn();
  return {
    access: response.access_token,
    ...(seconds === undefined ? {} : { accessEndsAt: clock() + seconds * 1_000 }),
    id: response.id_token ?? earlier?.id ?? "",
    ...(refresh === undefined ? {} : { refresh }),
  };
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw providerFailure(error);
  }
}

/** @returns undefined when the provider refuses the person */
async function unlessRefused<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await guarded(work);
  } catch (error) {
    if (error instanceof Failure && error.kind === "unauthenticated") return undefined;
    throw error;
  }
}
