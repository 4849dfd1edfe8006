import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { test as base } from "vitest";
import { readOidc } from "../../../src/config/oidc.ts";
import { newGenerationId } from "../../../src/contract/generation-id.ts";
import { arrangePartitions } from "../../../src/store/partitions.ts";
import type { Pool } from "../../../src/store/pool.ts";
import { adminOf } from "../../helpers/admin.ts";
import { testDatabase } from "../../helpers/database.ts";
import { fixture } from "../../helpers/lifetime.ts";
import { startProvider, type TestProvider, walkProvider } from "../../helpers/oidc.ts";

const BACK = new URL("http://127.0.0.1:1/console/sign-in/done");
const MINUTE = 60_000;

const test = base
  .extend("provider", { scope: "file" }, fixture(startProvider))
  .extend(
    "pool",
    { scope: "file" },
    fixture(async (t) => (await testDatabase(t)).pool),
  )
  .extend("office", { scope: "file" }, async ({ provider, pool }) => {
    const office = officeOf(pool, provider);
    await office.workspaces.createWorkspace({ name: "default" });
    return office;
  })
  .extend("subject", async ({ provider }) => {
    const subject = `person-${randomBytes(4).toString("hex")}`;
    provider.accounts.set(subject, { name: "Ann", email: `${subject}@example.com` });
    return subject;
  });

/** A replica that signs people in. Its clock can be ahead of that of the provider. */
function officeOf(pool: Pool, provider: TestProvider) {
  let ahead = 0;
  const config = readOidc(provider.env);
  assert.ok(config);
  const oidc = { config, log: pino({ level: "silent" }) };
  const office = adminOf(pool, { oidc, clock: () => Date.now() + ahead });
  const { people } = office;
  assert.ok(people);
  const signIn = async (subject: string) => {
    const { url, attempt } = await people.begin(BACK);
    return people.finish(new URL(await walkProvider(url.href, subject)), attempt, "127.0.0.1");
  };
  return { ...office, people, signIn, pass: (ms: number) => (ahead += ms) };
}

test("signs a person in with the roles of the groups", async ({ provider, office, subject }) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering", "operators", "other"] });
  const { session, secret } = await office.signIn(subject);
  assert.equal(session.person.name, "Ann");
  assert.equal(session.shown?.role, "developer");
  assert.ok(session.operator);
  assert.equal((await office.people.authenticate(secret)).shown?.caller.workspace, "default");
});

test("makes a person an operator by an address that the provider has verified, and by no other", async ({
  provider,
  pool,
  subject,
}) => {
  const email = `${subject}@example.com`;
  const office = officeOf(pool, { ...provider, env: { ...provider.env, CHORUS_OIDC_OPERATORS: `email=${email}` } });
  for (const [verified, isOperator] of [
    [true, true],
    ["true", true],
    [false, false],
    ["false", false],
    [undefined, false],
  ] as const) {
    provider.accounts.set(subject, { email, email_verified: verified });
    const { session } = await office.signIn(subject);
    assert.equal(session.operator !== undefined, isOperator, String(verified));
  }
});

test("refuses another state, nonce or code verifier", async ({ office, subject }) => {
  for (const name of ["state", "nonce", "verifier"] as const) {
    const { url, attempt } = await office.people.begin(BACK);
    const current = new URL(await walkProvider(url.href, subject));
    const wrong = { ...attempt, [name]: randomBytes(32).toString("base64url") };
    await assert.rejects(office.people.finish(current, wrong, name), { kind: "unauthenticated" }, name);
  }
});

test("ends the access of who has lost the group within ten minutes", async ({ provider, office, subject }) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { secret } = await office.signIn(subject);
  const { actor } = await office.people.authenticate(secret);
  const { key } = await office.keys.createKey({ name: "hers" }, actor);
  provider.accounts.set(subject, { name: "Ann", groups: [] });
  assert.ok((await office.people.authenticate(secret)).shown, "the answer of the provider is fresh");
  office.pass(9 * MINUTE);
  assert.equal((await office.people.authenticate(secret)).shown, undefined);
  const { keys } = await office.keys.listKeys({ workspace: "default" });
  assert.ok(keys.find(({ id }) => id === key?.id)?.revokedAt);
});

test("asks for a new sign-in, and ends no role, when a refresh has no ID token to confirm the groups", async ({
  pool,
  office,
  onTestFinished,
}) => {
  const features = { userinfo: { enabled: false }, devInteractions: { enabled: true } };
  const provider = await startProvider({ onTestFinished }, { features });
  provider.omits.refresh_token.push("id_token");
  provider.accounts.set("ida", { name: "Ida", groups: ["engineering"] });
  provider.accounts.set("ivo", { name: "Ivo" });
  const other = officeOf(pool, provider);
  const ida = await other.signIn("ida");
  const { key } = await office.keys.createKey({ name: "idas" }, ida.session.actor);
  const ivo = await other.signIn("ivo");
  const { path } = await office.members.inviteMember({ workspace: "default", role: 4 });
  await other.people.accept(ivo.secret, path.split("=")[1] ?? "", "here");
  other.pass(9 * MINUTE);
  await assert.rejects(other.people.authenticate(ida.secret), { kind: "unauthenticated" });
  const { keys } = await office.keys.listKeys({ workspace: "default" });
  assert.equal(keys.find(({ id }) => id === key?.id)?.revokedAt, undefined);
  const { person, shown } = await other.people.authenticate(ivo.secret);
  assert.deepEqual([person.name, shown?.role], ["Ivo", "viewer"]);
  assert.equal((await other.signIn("ida")).session.shown?.role, "developer");
});

test("ends the role of who has lost the group in the userinfo, also when a refresh has no ID token", async ({
  pool,
  onTestFinished,
}) => {
  const provider = await startProvider({ onTestFinished }, { conformIdTokenClaims: false });
  provider.omits.refresh_token.push("id_token");
  provider.accounts.set("uma", { name: "Uma", groups: ["engineering"] });
  const office = officeOf(pool, provider);
  const { secret } = await office.signIn("uma");
  office.pass(9 * MINUTE);
  assert.equal((await office.people.authenticate(secret)).shown?.role, "developer");
  provider.accounts.set("uma", { name: "Uma" });
  office.pass(9 * MINUTE);
  assert.equal((await office.people.authenticate(secret)).shown, undefined);
});

test("asks with an access token whose end the provider does not tell, until the provider refuses it", async ({
  pool,
  onTestFinished,
}) => {
  const provider = await startProvider({ onTestFinished }, { issueRefreshToken: async () => false });
  provider.omits.authorization_code.push("expires_in");
  provider.accounts.set("eve", { name: "Eve", groups: ["engineering"] });
  const office = officeOf(pool, provider);
  const { secret } = await office.signIn("eve");
  office.pass(9 * MINUTE);
  assert.equal((await office.people.authenticate(secret)).shown?.role, "developer");
  provider.accounts.delete("eve");
  office.pass(9 * MINUTE);
  await assert.rejects(office.people.authenticate(secret), { kind: "unauthenticated" });
});

test("keeps who is signed in while the provider is down, and refuses sign-ins", async ({
  provider,
  office,
  subject,
}) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { secret } = await office.signIn(subject);
  office.pass(11 * MINUTE);
  provider.isDown = true;
  assert.ok((await office.people.authenticate(secret)).shown);
  await assert.rejects(office.people.begin(BACK), { kind: "upstream_failed" });
  provider.isDown = false;
  provider.accounts.delete(subject);
  office.pass(MINUTE);
  await assert.rejects(office.people.authenticate(secret), { kind: "unauthenticated" });
});

for (const [what, part] of [
  ["userinfo", "isUserinfoDown"],
  ["keys", "areKeysDown"],
] as const)
  test(`keeps who is signed in when the provider's ${what} cannot be read after a refresh`, async ({
    provider,
    office,
    subject,
  }) => {
    provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
    const { secret } = await office.signIn(subject);
    office.pass(9 * MINUTE);
    provider[part] = true;
    assert.ok((await office.people.authenticate(secret)).shown);
    provider[part] = false;
    provider.accounts.set(subject, { name: "Ann", groups: ["finance"] });
    office.pass(MINUTE);
    assert.equal((await office.people.authenticate(secret)).shown?.role, "billing");
  });

test("lets one person use an invitation, once, and keeps the last owner", async ({ provider, office, subject }) => {
  provider.accounts.set("thief", { name: "Eve" });
  const { path, invitation } = await office.members.inviteMember({ workspace: "default", role: 1, note: "Ann" });
  const secret = path.split("=")[1] ?? "";
  const ann = await office.signIn(subject);
  assert.equal(ann.session.shown, undefined);
  const session = await office.people.accept(ann.secret, secret, "here");
  assert.equal(session.shown?.role, "owner");
  const eve = await office.signIn("thief");
  await assert.rejects(office.people.accept(eve.secret, secret, "there"), { kind: "invalid_request", field: "token" });
  const { members, invitations } = await office.members.listMembers({ workspace: "default" });
  assert.ok(members.some(({ person }) => person?.id === session.person.id));
  assert.ok(!invitations.some(({ id }) => id === invitation?.id));
  const person = session.person.id;
  await assert.rejects(office.members.removeMember({ workspace: "default", person }), { field: "person" });
  await assert.rejects(office.members.setMemberRole({ workspace: "default", person, role: 4 }), { field: "role" });
});

test("accepts a minute of difference between the clocks, and no more", async ({ pool, onTestFinished }) => {
  const provider = await startProvider({ onTestFinished }, { ttl: { IdToken: 60 } });
  provider.accounts.set("skewed", { name: "Sam" });
  const office = officeOf(pool, provider);
  office.pass(90_000);
  assert.equal((await office.signIn("skewed")).session.person.name, "Sam");
  office.pass(60_000);
  await assert.rejects(office.signIn("skewed"), { kind: "unauthenticated" });
});

test("sends the secret as the standard's default where the provider does not say how", async ({
  pool,
  onTestFinished,
}) => {
  const provider = await startProvider({ onTestFinished }, { clientAuthMethods: ["client_secret_basic"] });
  provider.omits.metadata.push("token_endpoint_auth_methods_supported");
  provider.accounts.set("basic", { name: "Bo" });
  assert.equal((await officeOf(pool, provider).signIn("basic")).session.person.name, "Bo");
});

test("signs in after the provider has changed its key", async ({ pool, onTestFinished }) => {
  const provider = await startProvider({ onTestFinished });
  provider.accounts.set("rotated", { name: "Kim" });
  const office = officeOf(pool, provider);
  await office.signIn("rotated");
  provider.rotateKey();
  assert.equal((await office.signIn("rotated")).session.person.name, "Kim");
});

test("asks the provider once for many requests of a session, and uses each refresh token once", async ({
  provider,
  pool,
  subject,
}) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const replicas = [officeOf(pool, provider), officeOf(pool, provider)] as const;
  const { secret } = await replicas[0].signIn(subject);
  for (let round = 0; round < 3; round += 1) {
    for (const replica of replicas) replica.pass(9 * MINUTE);
    const calls = Array.from({ length: 10 }, (_, i) => replicas[(i % 2) as 0 | 1].people.authenticate(secret));
    for (const session of await Promise.all(calls)) assert.equal(session.shown?.role, "developer");
  }
});

test("takes the keys from a member who becomes billing or viewer, and confines those of a new developer", async ({
  provider,
  office,
  subject,
}) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["leads"] });
  const { secret } = await office.signIn(subject);
  const { actor } = await office.people.authenticate(secret);
  const { key } = await office.keys.createKey({ name: "hers" }, actor);
  assert.equal(key?.tags, undefined);
  const { key: reader } = await office.keys.createKey({ name: "reader", scopes: [2] }, actor);
  const confirmed = async (groups: string[]) => {
    provider.accounts.set(subject, { name: "Ann", groups });
    office.pass(9 * MINUTE);
    await office.people.authenticate(secret);
    const { keys } = await office.keys.listKeys({ workspace: "default" });
    return [key, reader].map((key) => keys.find(({ id }) => id === key?.id));
  };
  const [confined, ended] = await confirmed(["engineering"]);
  assert.deepEqual(confined?.tags?.fixed, { "chorus.member": actor.id });
  assert.deepEqual([confined?.scopes, confined?.revokedAt], [[1], undefined]);
  assert.deepEqual([ended?.scopes, ended?.revokedAt !== undefined], [[2], true]);
  assert.ok((await confirmed(["finance"]))[0]?.revokedAt);
});

test("confines the keys of a developer to answers, and their caps to what an owner allows", async ({
  provider,
  office,
  subject,
}) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { actor } = (await office.signIn(subject)).session;
  const { key } = await office.keys.createKey({ name: "hers" }, actor);
  assert.deepEqual(key?.scopes, [1]);
  await assert.rejects(office.keys.createKey({ name: "more", scopes: [2] }, actor), { kind: "missing_scope" });
  const cap = (subject: string, amount: string) => ({ cap: { subject, figure: 1, period: 2, amount } });
  const tag = `tag:chorus.member=${actor.id}`;
  await office.caps.setCap({ workspace: "default", ...cap("tag:chorus.member=*", "5") });
  await assert.rejects(office.caps.setCap(cap(tag, "9"), actor), { kind: "missing_scope" });
  await assert.rejects(office.caps.setCap(cap(`key:${key?.id}`, "9"), actor), { field: "cap.amount" });
  await office.caps.setCap(cap(`key:${key?.id}`, "4"), actor);
});

test("shows a developer the quotas of their own keys, and of nobody else", async ({ provider, office, subject }) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { actor, shown } = (await office.signIn(subject)).session;
  assert.ok(shown);
  const { key: own } = await office.keys.createKey({ name: "hers" }, actor);
  const { key: other } = await office.keys.createKey({ workspace: "default", name: "others" });
  await office.caps.setCap({ cap: { subject: `key:${own?.id}`, figure: 2, period: 3, amount: "7" } }, actor);
  const { quotas } = await office.usage.getQuotas({ subject: `key:${own?.id}` }, actor);
  assert.deepEqual(
    quotas?.caps.map(({ limit }) => limit),
    [7],
  );
  await office.usage.getQuotas({ subject: `tag:chorus.member=${actor.id}` }, actor);
  for (const subject of [`key:${other?.id}`, "key:*", "user:alice", "user:*", "tag:chorus.member=*"]) {
    await assert.rejects(office.usage.getQuotas({ subject }, actor), { kind: "missing_scope" }, subject);
    await assert.rejects(office.usage.getUsage({ subject }, actor), { kind: "missing_scope" }, subject);
  }
  await office.quotas(shown.caller);
  for (const user of ["alice", "*"])
    await assert.rejects(async () => office.quotas(shown.caller, { user }), { kind: "missing_scope" }, user);
});

test("shows a developer how requests of their own keys were answered, and no others", async ({
  pool,
  provider,
  office,
  subject,
}) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { actor } = (await office.signIn(subject)).session;
  const { key: own } = await office.keys.createKey({ name: "hers" }, actor);
  const { key: others } = await office.keys.createKey({ workspace: "default", name: "others" });
  const now = Date.now();
  await arrangePartitions(pool, now, 400, 30);
  const [id, hidden] = await Promise.all(
    [own, others].map(async (key) => {
      const generation = newGenerationId(now);
      await pool.query(
        `insert into generations
         select id, $1, $2, 'req_1', $3, false, 'text', 'auto', 'low', 1, 1, 0, 1, 'ok', 'stop', 1
         from workspaces where name = 'default'`,
        [new Date(now), generation, key?.id],
      );
      return generation;
    }),
  );
  assert.equal((await office.activity.getRun({ id: id ?? "" }, actor)).generation?.keyId, own?.id);
  await assert.rejects(office.activity.getRun({ id: hidden ?? "" }, actor), { kind: "unknown_entity" });
  assert.equal((await office.activity.getRun({ workspace: "default", id: hidden ?? "" })).generation?.id, hidden);
});

test("lets an owner remove a member whom the provider no longer confirms, and take over a key", async ({
  provider,
  office,
  subject,
}) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { session, secret } = await office.signIn(subject);
  const made = await Promise.all(["kept", "ended"].map((name) => office.keys.createKey({ name }, session.actor)));
  const [kept, ended] = made.map(({ key }) => key);
  await office.keys.takeOverKey({ id: kept?.id ?? "" });
  for (const { secret: of } of made) await office.authenticate(of);
  const removed = await office.members.removeMember({ workspace: "default", person: session.person.id });
  assert.equal(removed.revokedKeys, 1);
  // This replica does not wait for a message.
  await assert.rejects(async () => office.authenticate(made[1]?.secret), { kind: "unauthenticated" });
  await office.authenticate(made[0]?.secret);
  const { keys } = await office.keys.listKeys({ workspace: "default" });
  const stateOf = (id = "") => keys.find((key) => key.id === id);
  assert.equal(stateOf(kept?.id)?.revokedAt, undefined);
  assert.equal(stateOf(kept?.id)?.tags, undefined);
  assert.ok(stateOf(ended?.id)?.revokedAt);
  assert.equal((await office.people.authenticate(secret)).shown, undefined);
});

test("leaves no key to a member who is removed while they create one", async ({ provider, pool, office, subject }) => {
  provider.accounts.set(subject, { name: "Ann", groups: ["engineering"] });
  const { actor, person } = (await office.signIn(subject)).session;
  const [created, removing] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow = adminOf({
    ...pool,
    tx: (run) =>
      pool.tx(async (query) => {
        const result = await run(query);
        created.resolve();
        await removing.promise;
        return result;
      }),
  });
  const making = slow.keys.createKey({ name: "late" }, actor);
  await created.promise;
  const removed = office.members.removeMember({ workspace: "default", person: person.id });
  await Promise.race([removed, sleep(100)]);
  removing.resolve();
  const { secret } = await making;
  assert.equal((await removed).revokedKeys, 1);
  await assert.rejects(async () => office.authenticate(secret), { kind: "unauthenticated" });
  // This call was authenticated before the removal.
  await assert.rejects(office.keys.createKey({ name: "later" }, actor), { kind: "missing_scope" });
});
