import { Failure } from "../../contract/failure.ts";

/** The message for a provider that cannot be used. */
export const UNAVAILABLE =
  "The identity provider does not answer as expected. Try again later, or tell the operator of this service.";

/** What `openid-client` throws, as far as it matters. The classes are not known until the library is loaded. */
interface Thrown {
  readonly name: string;
  readonly code?: unknown;
  /** Error code of the provider, such as `invalid_grant` (RFC 6749, section 5.2). */
  readonly error?: unknown;
  readonly cause?: unknown;
}

/** Codes of the library for calls that had no answer of the provider. */
const NO_ANSWER: ReadonlySet<unknown> = new Set(["OAUTH_TIMEOUT", "OAUTH_ABORT", "OAUTH_RESPONSE_IS_NOT_JSON"]);

/** Error codes with which a provider refuses a person, and not this service. */
const REFUSED: ReadonlySet<unknown> = new Set(["invalid_grant", "access_denied", "login_required", "consent_required"]);

/**
 * Turns an error of the library into a failure: `unauthenticated` when the provider refuses the person, or sent what
 * cannot be trusted; `upstream_failed` when it does not answer, or refuses this service.
 */
export function providerFailure(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const cause = error;
  if (!isRefusal(error as Thrown)) {
    return new Failure("upstream_failed", { message: UNAVAILABLE, cause });
  }
  const message = "The identity provider did not confirm the sign-in. Sign in again.";
  return new Failure("unauthenticated", { message, cause });
}

function isRefusal({ name, code, error, cause }: Thrown): boolean {
  switch (name) {
    case "AuthorizationResponseError":
    case "ResponseBodyError":
      return REFUSED.has(error);
    case "WWWAuthenticateChallengeError":
      return true;
    case "ClientError":
      return !NO_ANSWER.has(code) && !(cause instanceof Response);
    default:
      // Such as the TypeError of a connection that failed.
      return false;
  }
}

/** Longest chain of causes that is looked at. */
const MAX_CAUSES = 5;

/**
 * What a failure says of the provider, for the log: its error code, a status, the name of a claim or member that is not
 * as expected, and the issuer that its metadata name. Nothing of it is of a person.
 */
export function providerFacts(failure: unknown): Record<string, string | number> {
  const facts: Record<string, string | number> = {};
  let link = failure;
  for (let depth = 0; depth < MAX_CAUSES && typeof link === "object" && link !== null; depth += 1) {
    const { error, attribute, claim, body, cause } = link as Record<string, unknown>;
    if (isCode(error)) facts.error = error;
    if (isCode(claim)) facts.claim = claim;
    if (isCode(attribute)) facts.member = attribute;
    if (attribute === "issuer" && URL.canParse(String(Object(body).issuer))) facts.issuer = String(Object(body).issuer);
    if (link instanceof Response) facts.status = link.status;
    link = cause;
  }
  return facts;
}

/** Whether a value is a code or a name, and no text. */
function isCode(value: unknown): value is string {
  return typeof value === "string" && /^[\w.-]{1,64}$/.test(value);
}
