import { ROLES, type Role } from "../contract/roles.ts";
import { ConfigError, type Env, expectedObject, parse } from "./config-error.ts";
import { list } from "./values.ts";

/** A claim that has a value, or has it among its values. */
export interface ClaimRule {
  readonly claim: string;
  readonly value: string;
}

/** The OpenID provider through which people sign in. */
export interface OidcConfig {
  /** As the provider's metadata have it. */
  readonly issuer: string;
  readonly clientId: string;
  /** Undefined: a public client. */
  readonly clientSecret: string | undefined;
  /** Separated by spaces. */
  readonly scopes: string;
  /** Further parameters of the authorization request. */
  readonly parameters: Readonly<Record<string, string>>;
  /** What the sign-in button calls the provider. */
  readonly name: string;
  /** Claim that has a person's groups. */
  readonly groupsClaim: string;
  /** A person with one of these claims is an operator. */
  readonly operators: readonly ClaimRule[];
  /** Roles by group, then by name of the workspace. */
  readonly groups: Readonly<Record<string, Readonly<Record<string, Role>>>>;
}

/** Reads the variables CHORUS_OIDC_…. @returns undefined without CHORUS_OIDC_ISSUER. @throws ConfigError */
export function readOidc(env: Env): OidcConfig | undefined {
  const issuer = readIssuer(env);
  if (!issuer) {
    const other = Object.keys(env).find((name) => name.startsWith("CHORUS_OIDC_") && env[name]);
    if (other) throw new ConfigError(`${other} needs CHORUS_OIDC_ISSUER. Set that, or unset ${other}.`);
    return undefined;
  }
  const clientId = env.CHORUS_OIDC_CLIENT_ID;
  if (!clientId) throw new ConfigError("CHORUS_OIDC_CLIENT_ID must be set beside CHORUS_OIDC_ISSUER.");
  return {
    issuer,
    clientId,
    clientSecret: env.CHORUS_OIDC_CLIENT_SECRET || undefined,
    scopes: readScopes(env),
    parameters: readParameters(env),
    name: env.CHORUS_OIDC_NAME || new URL(issuer).host,
    groupsClaim: env.CHORUS_OIDC_GROUPS_CLAIM || "groups",
    operators: readRules(env),
    groups: readGroups(env),
  };
}

function readIssuer(env: Env): string | undefined {
  const text = env.CHORUS_OIDC_ISSUER;
  if (!text) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = /^(localhost|127\.[\d.]+|\[::1\])$/.test(url?.hostname ?? "");
  if (url && (url.protocol === "https:" || (url.protocol === "http:" && isLocal)) && !url.search && !url.hash)
    return text;
  throw new ConfigError(
    `CHORUS_OIDC_ISSUER must be the https:// address of the provider, as "issuer" of its metadata has it, ` +
      `but is "${text}". Correct it or unset it.`,
  );
}

function readScopes(env: Env): string {
  const scopes = (env.CHORUS_OIDC_SCOPES || "openid profile email").split(/\s+/).filter((scope) => scope !== "");
  if (!scopes.includes("openid"))
    throw new ConfigError('CHORUS_OIDC_SCOPES must have "openid", such as "openid profile email". Add it.');
  return scopes.join(" ");
}

/** Parameters that the service sets itself. */
const OWN =
  /^(client_id|redirect_uri|response_type|response_mode|scope|state|nonce|code_challenge(_method)?|request(_uri)?)$/;

function readParameters(env: Env): Record<string, string> {
  const text = env.CHORUS_OIDC_PARAMETERS;
  if (!text) return {};
  const expected = 'CHORUS_OIDC_PARAMETERS must be a JSON object of texts, such as {"access_type":"offline"}';
  const found: Record<string, string> = {};
  for (const [name, value] of Object.entries(expectedObject(parse(text, expected), expected))) {
    if (typeof value !== "string") throw new ConfigError(`${expected}; "${name}" is no text. Correct it.`);
    if (OWN.test(name)) throw new ConfigError(`${expected}; the service sets "${name}" itself. Remove it.`);
    found[name] = value;
  }
  return found;
}

/** Reads `claim=value, …`. */
function readRules(env: Env): ClaimRule[] {
  return list(env, "CHORUS_OIDC_OPERATORS").map((rule) => {
    const at = rule.lastIndexOf("=");
    const [claim, value] = [rule.slice(0, at).trim(), rule.slice(at + 1).trim()];
    if (at > 0 && claim !== "" && value !== "") return { claim, value };
    throw new ConfigError(
      `CHORUS_OIDC_OPERATORS must be claims with values, separated by commas, such as "groups=chorus-operators", ` +
        `but has "${rule}". Correct it.`,
    );
  });
}

function readGroups(env: Env): OidcConfig["groups"] {
  const text = env.CHORUS_OIDC_GROUPS;
  if (!text) return {};
  const expected =
    "CHORUS_OIDC_GROUPS must be a JSON object of workspaces and roles by group, such as " +
    '{"engineering":{"default":"developer"}}';
  const groups = Object.entries(expectedObject(parse(text, expected), expected)).map(([group, value]) => {
    const roles = Object.entries(expectedObject(value, expected, `"${group}"`)).map(([workspace, word]) => {
      const role = ROLES.find((known) => known === word);
      if (role) return [workspace, role] as const;
      throw new ConfigError(
        `${expected}; the role of "${group}" in "${workspace}" must be one of ${ROLES.join(", ")}.`,
      );
    });
    return [group, Object.fromEntries(roles)] as const;
  });
  return Object.fromEntries(groups);
}
