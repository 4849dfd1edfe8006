import type { ClaimRule, OidcConfig } from "../../config/oidc.ts";
import { ROLES, type Role } from "../../contract/roles.ts";

/** What the provider says of a person, from the ID token and the userinfo endpoint. */
export type Claims = Readonly<Record<string, unknown>> & { readonly sub: string };

/** Longest name and e-mail address that are stored, in characters. */
const MAX_TEXT = 200;

/** The name and the e-mail address as texts that can be shown; empty without them. */
export function profileOf(claims: Claims): { name: string; email: string } {
  const name = textOf(claims.name) || textOf(claims.preferred_username);
  return { name, email: textOf(claims.email) };
}

/** Whether one of the rules makes the person an operator. */
export function isOperator(claims: Claims, rules: readonly ClaimRule[]): boolean {
  return rules.some(({ claim, value }) => {
    // Some providers let people enter any address. Some, such as Cognito, write the word in place of the boolean.
    if (claim === "email" && claims.email_verified !== true && claims.email_verified !== "true") return false;
    return valuesOf(claims[claim]).includes(value);
  });
}

/** The roles that the groups of a person give, by name of the workspace: the strongest where there are several. */
export function rolesOf(claims: Claims, { groupsClaim, groups }: Pick<OidcConfig, "groupsClaim" | "groups">) {
  const own = valuesOf(claims[groupsClaim]).filter((group) => Object.hasOwn(groups, group));
  const given = own.flatMap((group) => Object.entries(groups[group] ?? {}));
  const roles = new Map<string, Role>();
  for (const [workspace, role] of given) {
    const earlier = roles.get(workspace);
    if (!earlier || ROLES.indexOf(role) < ROLES.indexOf(earlier)) roles.set(workspace, role);
  }
  return roles;
}

/** Whether two sets of claims give the same rights. */
export function givesSame(some: Claims, others: Claims, config: OidcConfig): boolean {
  const rightsOf = (claims: Claims) => [isOperator(claims, config.operators), ...rolesOf(claims, config)];
  return JSON.stringify(rightsOf(some)) === JSON.stringify(rightsOf(others));
}

/** A claim has one value or a list of them. */
function valuesOf(claim: unknown): string[] {
  const values = Array.isArray(claim) ? claim : [claim];
  return values.filter((value) => ["string", "number", "boolean"].includes(typeof value)).map(String);
}

function textOf(claim: unknown): string {
  if (typeof claim !== "string") return "";
  return [...claim.replace(/\p{Cc}/gu, " ").trim()].slice(0, MAX_TEXT).join("");
}
