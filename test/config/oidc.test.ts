import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "vitest";
import { ConfigError } from "../../src/config/config-error.ts";
import { readOidc } from "../../src/config/oidc.ts";
import { blocks, ROOT } from "../helpers/guides.ts";

const BASE = { CHORUS_OIDC_ISSUER: "https://id.example.com/realms/acme", CHORUS_OIDC_CLIENT_ID: "chorus" };

test("reads a provider with its defaults", () => {
  assert.deepEqual(readOidc(BASE), {
    issuer: "https://id.example.com/realms/acme",
    clientId: "chorus",
    clientSecret: undefined,
    scopes: "openid profile email",
    parameters: {},
    name: "id.example.com",
    groupsClaim: "groups",
    operators: [],
    groups: {},
  });
  assert.equal(readOidc({}), undefined);
});

test("reads groups, operators and parameters", () => {
  const config = readOidc({
    ...BASE,
    CHORUS_OIDC_NAME: "Acme",
    CHORUS_OIDC_OPERATORS: "groups=ops, https://acme.example/role=a=b ,email=ann@example.com",
    CHORUS_OIDC_GROUPS: '{"engineering":{"default":"developer","research":"owner"}}',
    CHORUS_OIDC_PARAMETERS: '{"access_type":"offline"}',
  });
  assert.equal(config?.name, "Acme");
  assert.deepEqual(config?.operators, [
    { claim: "groups", value: "ops" },
    { claim: "https://acme.example/role=a", value: "b" },
    { claim: "email", value: "ann@example.com" },
  ]);
  assert.deepEqual(config?.groups, { engineering: { default: "developer", research: "owner" } });
  assert.deepEqual(config?.parameters, { access_type: "offline" });
});

test.each([
  ["CHORUS_OIDC_ISSUER", "http://id.example.com", /must be the https:\/\/ address/],
  ["CHORUS_OIDC_ISSUER", "id.example.com", /must be the https:\/\/ address/],
  ["CHORUS_OIDC_CLIENT_ID", "", /CHORUS_OIDC_CLIENT_ID must be set/],
  ["CHORUS_OIDC_SCOPES", "profile", /must have "openid"/],
  ["CHORUS_OIDC_PARAMETERS", '{"state":"x"}', /the service sets "state" itself/],
  ["CHORUS_OIDC_PARAMETERS", '{"max_age":5}', /"max_age" is no text/],
  ["CHORUS_OIDC_OPERATORS", "operators", /such as "groups=chorus-operators"/],
  ["CHORUS_OIDC_GROUPS", '{"a":{"default":"admin"}}', /must be one of owner, developer, billing, viewer/],
  ["CHORUS_OIDC_PARAMETERS", "[]", /\{"access_type":"offline"\}; it is no object\. Correct it\.$/],
  ["CHORUS_OIDC_GROUPS", "[]", /\}; it is no object\. Correct it\.$/],
  ["CHORUS_OIDC_GROUPS", '{"a":"owner"}', /\}; "a" is no object\. Correct it\.$/],
])("refuses %s=%s", (name, value, message) => {
  assert.throws(
    () => readOidc({ ...BASE, [name]: value }),
    (error) => error instanceof ConfigError && message.test(error.message),
  );
});

test("refuses settings of a provider without its address", () => {
  assert.throws(() => readOidc({ CHORUS_OIDC_CLIENT_ID: "chorus" }), /CHORUS_OIDC_CLIENT_ID needs CHORUS_OIDC_ISSUER/);
});

test("accepts the examples of the page about people, whose variables are described", async () => {
  const described = await readFile(join(ROOT, "docs/configuration.md"), "utf8");
  const examples = await blocks("docs/people.md", "text");
  const names = examples.map(({ text }) => {
    const env = Object.fromEntries(text.split("\n").map((line) => line.split(/=(.*)/)));
    for (const name of Object.keys(env)) assert.ok(described.includes(`\`${name}\``), name);
    const config = readOidc(env);
    assert.equal(config?.operators.length, 1, text);
    assert.equal(Object.keys(config?.groups ?? {}).length, env.CHORUS_OIDC_GROUPS ? 1 : 0, text);
    return config?.name;
  });
  assert.deepEqual(names, ["Keycloak", "Microsoft", "Okta", "Google"]);
});
