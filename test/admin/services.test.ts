import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import type { DescService } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";
import { describe } from "vitest";
import { CreditService, LedgerEntryKind } from "../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import { LimitName, type Workspace, WorkspaceKind, WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import { MetricsGroupBy, MetricsInterval, SpendPeriod } from "../../gen/chorus/v1/generation_pb.js";
import { ServerReflection } from "../../gen/grpc/reflection/v1/reflection_pb.js";
import { Health } from "../../gen/health/v1/health_pb.js";
import { test as base } from "../helpers/fixtures.ts";

const TRANSPORTS = {
  connect: (baseUrl: string) => createConnectTransport({ baseUrl, httpVersion: "1.1" }),
  grpc: (baseUrl: string) => createGrpcTransport({ baseUrl }),
  "grpc-web": (baseUrl: string) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
};

interface Clients {
  workspaces: Client<typeof WorkspaceService>;
  credits: Client<typeof CreditService>;
  keys: Client<typeof KeyService>;
  usage: Client<typeof UsageService>;
}

/** Clients that carry a token. */
function clients(rpcUrl: string, token: string, transport: keyof typeof TRANSPORTS = "connect"): Clients {
  const made = TRANSPORTS[transport](rpcUrl);
  const client = <S extends DescService>(service: S): Client<S> =>
    createClient(service, {
      unary: (method, signal, timeoutMs, header, input, values) =>
        made.unary(method, signal, timeoutMs, { ...header, authorization: `Bearer ${token}` }, input, values),
      stream: made.stream,
    });
  return {
    workspaces: client(WorkspaceService),
    credits: client(CreditService),
    keys: client(KeyService),
    usage: client(UsageService),
  };
}

/** Expects a failure and returns its message. */
async function refused(
  call: Promise<unknown>,
  code: Code,
  detail: { code?: string; field?: string } = {},
): Promise<string> {
  const error = await call.then(
    () => assert.fail("the call was not refused"),
    (reason: unknown) => ConnectError.from(reason),
  );
  assert.equal(Code[error.code], Code[code], error.message);
  const [found] = error.findDetails(FailureDetailSchema);
  assert.ok(found, "there is a FailureDetail");
  for (const [name, value] of Object.entries(detail)) assert.equal(found[name as "code" | "field"], value);
  return error.rawMessage;
}

const test = base
  .extend("env", { scope: "file" }, { CHORUS_TIERS: "" })
  .extend("operator", ({ service }) => clients(service.rpcUrl, service.operatorToken))
  /** Each test has a new workspace with an owner, and a second workspace with one key. */
  .extend("acme", async ({ service, operator }) => {
    const { workspaces, keys } = operator;
    const suffix = randomUUID().slice(0, 8);
    const [name, rival] = [`acme-${suffix}`, `rival-${suffix}`];
    await workspaces.createWorkspace({ name, kind: WorkspaceKind.ORGANIZATION });
    await workspaces.createWorkspace({ name: rival });
    const { token, id: tokenId, workspace } = await workspaces.createOwnerToken({ workspace: name });
    assert.match(token, /^ow_/);
    const rivalKey = await keys.createKey({ workspace: rival, name: "theirs" });
    return { name, id: workspace?.id, token, tokenId, owner: clients(service.rpcUrl, token), rival, rivalKey };
  });

describe("administration over the internal listener", () => {
  test("starts with the workspace default, a starting grant and the limits of the first tier", async ({ operator }) => {
    const { workspace } = await operator.workspaces.getWorkspace({ workspace: "default" });
    assert.equal(workspace?.granted, "1000");
    assert.equal(workspace?.tier, "free");
    assert.equal(requestsPerMinute(workspace), 600n);
    const { entries } = await operator.credits.listLedger({ workspace: "default" });
    assert.deepEqual(entries.at(-1)?.reference, "starting grant");
    assert.equal(entries.at(-1)?.kind, LedgerEntryKind.GRANT);
  });

  test.for(["connect", "grpc", "grpc-web"] as const)(
    "lets an owner manage keys and spend limits and read ledger and usage over %s",
    async (transport, { service, acme: { name, id: workspaceId, token } }) => {
      const { keys, credits, usage, workspaces } = clients(service.rpcUrl, token, transport);
      const { key, secret } = await keys.createKey({
        name: "first",
        expiresAt: timestampFromDate(new Date(Date.now() + 60_000)),
      });
      assert.match(secret, /^ck_/);
      assert.equal(key?.workspace, name);
      const id = key?.id ?? "";
      const updated = await keys.updateKey({ id, name: "second", expiry: { case: "neverExpires", value: {} } });
      assert.equal(updated.key?.name, "second");
      assert.equal(updated.key?.expiresAt, undefined);
      const listed = await keys.listKeys({});
      assert.ok(listed.keys.some((each) => each.id === id));
      assert.ok(listed.keys.every((each) => each.workspace === name));
      assert.ok((await keys.revokeKey({ id })).key?.revokedAt);
      const period = SpendPeriod.DAY;
      const { spendLimits } = await credits.setSpendLimit({ period, amount: "5.5" });
      assert.deepEqual(
        spendLimits.map((limit) => [limit.period, limit.amount]),
        [[SpendPeriod.DAY, "5.5"]],
      );
      assert.deepEqual((await credits.clearSpendLimit({ period })).spendLimits, []);
      assert.deepEqual((await credits.listLedger({})).entries, []);
      const used = await usage.getUsage({ groupBy: MetricsGroupBy.KEY });
      assert.equal(used.workspace, name);
      assert.equal(used.usage?.totals?.requests, 0n);
      assert.equal((await workspaces.getWorkspace({})).workspace?.id, workspaceId);
    },
  );

  test("hides other workspaces from an owner", async ({ operator, acme: { owner, rival, rivalKey } }) => {
    for (const ask of [
      (workspace: string) => owner.workspaces.getWorkspace({ workspace }),
      (workspace: string) => owner.credits.listLedger({ workspace }),
      (workspace: string) => owner.credits.setSpendLimit({ workspace, period: SpendPeriod.DAY, amount: "1" }),
      (workspace: string) => owner.credits.clearSpendLimit({ workspace, period: SpendPeriod.DAY }),
      (workspace: string) => owner.keys.createKey({ workspace }),
      (workspace: string) => owner.keys.listKeys({ workspace }),
      (workspace: string) => owner.usage.getUsage({ workspace }),
      (workspace: string) => owner.workspaces.getNextTier({ workspace }),
    ]) {
      const theirs = await refused(ask(rival), Code.NotFound, { code: "not_found", field: "workspace" });
      const none = await refused(ask("nobody"), Code.NotFound, { code: "not_found", field: "workspace" });
      assert.equal(theirs.replace(rival, "nobody"), none);
    }
    const { key } = rivalKey;
    for (const ask of [
      (id: string) => owner.keys.revokeKey({ id }),
      (id: string) => owner.keys.updateKey({ id, name: "mine" }),
    ]) {
      const theirs = await refused(ask(key?.id ?? ""), Code.NotFound, { code: "not_found", field: "id" });
      assert.equal(theirs, await refused(ask("key_0"), Code.NotFound));
    }
    const { keys } = await operator.keys.listKeys({ workspace: rival });
    assert.deepEqual(
      keys.map(({ name, revokedAt }) => [name, revokedAt]),
      [["theirs", undefined]],
    );
  });

  test("refuses an owner the calls of operators", async ({ operator, acme: { name, owner } }) => {
    const calls = [
      owner.workspaces.createWorkspace({ name: "more" }),
      owner.workspaces.listWorkspaces({}),
      owner.workspaces.setTier({ workspace: name, tier: "unlimited" }),
      owner.workspaces.setLimits({
        workspace: name,
        overrides: [{ name: LimitName.REQUESTS_PER_DAY, change: { case: "unlimited", value: {} } }],
      }),
      owner.workspaces.createOwnerToken({ workspace: name }),
      owner.credits.grant({ workspace: name, amount: "1", reference: "mine" }),
      owner.credits.purchase({ workspace: name, amount: "1", reference: "mine" }),
      owner.credits.checkBooks({ workspace: name }),
    ];
    await Promise.all(calls.map((call) => refused(call, Code.PermissionDenied)));
    assert.equal((await operator.workspaces.getWorkspace({ workspace: name })).workspace?.granted, "0");
  });

  test("gives one answer for tokens that are wrong, absent, expired or of another kind", async ({
    service,
    operator,
    acme: { name, token },
  }) => {
    const expiresAt = new Date(Date.now() + 700);
    const { token: brief } = await operator.workspaces.createOwnerToken({
      workspace: name,
      expiresAt: timestampFromDate(expiresAt),
    });
    assert.equal((await clients(service.rpcUrl, brief).workspaces.getWorkspace({})).workspace?.name, name);
    await new Promise((resolve) => setTimeout(resolve, expiresAt.getTime() - Date.now() + 50));
    const messages = new Set<string>();
    for (const wrong of ["nonsense", service.apiKey, `${token}x`, brief, ""]) {
      const { workspaces } = clients(service.rpcUrl, wrong);
      messages.add(await refused(workspaces.getWorkspace({}), Code.Unauthenticated, { code: "unauthenticated" }));
      messages.add(await refused(workspaces.listWorkspaces({}), Code.Unauthenticated, { code: "unauthenticated" }));
    }
    const bare = createClient(KeyService, TRANSPORTS.connect(service.rpcUrl));
    messages.add(await refused(bare.listKeys({}), Code.Unauthenticated));
    assert.equal(messages.size, 1, [...messages].join("\n"));
  });

  test("raises limits with a purchase, books a reference once, and passes the check", async ({
    operator,
    acme: { name, owner },
  }) => {
    const { balance } = await operator.credits.purchase({
      workspace: name,
      amount: "499.999999",
      reference: "inv-1",
    });
    assert.equal(balance?.purchased, "499.999999");
    const next = await operator.workspaces.getNextTier({ workspace: name });
    assert.equal(next.tier?.name, "1");
    assert.equal(next.tier?.purchased, "500");
    assert.equal(requestsPerMinute(next.tier), 2000n);
    assert.equal(next.missing, "0.000001");
    const first = await operator.credits.purchase({ workspace: name, amount: "0.000001", reference: "inv-2" });
    const again = await operator.credits.purchase({ workspace: name, amount: "0.000001", reference: "inv-2" });
    assert.deepEqual([first.booking?.bookedBefore, again.booking?.bookedBefore], [false, true]);
    assert.deepEqual([again.booking?.at, again.balance], [first.booking?.at, first.balance]);
    const { workspace } = await operator.workspaces.getWorkspace({ workspace: name });
    assert.equal(workspace?.tier, "1");
    assert.equal(requestsPerMinute(workspace), 2000n);
    assert.equal(workspace?.purchasedTotal, "500");
    assert.equal((await owner.workspaces.getNextTier({})).missing, "4500");
    const at = first.booking?.at;
    const since = await owner.credits.listLedger({ ...(at ? { startTime: at } : {}) });
    assert.deepEqual(
      since.entries.map(({ reference }) => reference),
      ["inv-2"],
    );
    const until = await owner.credits.listLedger({ ...(at ? { endTime: at } : {}) });
    assert.deepEqual(
      until.entries.map(({ reference }) => reference),
      ["inv-1"],
    );
    assert.deepEqual([since.entries[0]?.balance, until.entries[0]?.balance], ["500", "499.999999"]);
    const newest = await owner.credits.listLedger({ pageSize: 1 });
    const second = await owner.credits.listLedger({ pageSize: 1, pageToken: newest.nextPageToken });
    assert.deepEqual([newest.entries[0]?.balance, second.entries[0]?.balance], ["500", "499.999999"]);
    const both = await owner.credits.listLedger({});
    assert.deepEqual(
      both.entries.map(({ balance }) => balance),
      ["500", "499.999999"],
    );
    const never = { seconds: 1n << 60n, nanos: 0 };
    await refused(owner.credits.listLedger({ startTime: never }), Code.InvalidArgument, { field: "from" });
    await refused(owner.usage.getPerformance({ endTime: never }), Code.InvalidArgument, { field: "to" });
    await refused(owner.usage.getPerformance({ interval: MetricsInterval.MONTH }), Code.InvalidArgument, {
      field: "interval",
    });
    await refused(operator.credits.grant({ workspace: name, amount: "1", reference: "inv-2" }), Code.InvalidArgument, {
      code: "invalid_request",
      field: "reference",
    });
    assert.deepEqual((await operator.credits.checkBooks({ workspace: name })).differences, []);
    await refused(operator.credits.grant({ workspace: name, amount: "-1", reference: "x" }), Code.InvalidArgument, {
      field: "amount",
    });
    await refused(operator.credits.grant({ workspace: name, amount: "1e3", reference: "x" }), Code.InvalidArgument, {
      field: "amount",
    });
  });

  test("changes limits and tiers for an operator", async ({ operator, acme: { rival } }) => {
    const set = (name: LimitName, value: bigint) =>
      operator.workspaces.setLimits({ workspace: rival, overrides: [{ name, change: { case: "value", value } }] });
    const { workspace } = await set(LimitName.REQUESTS_PER_MINUTE, 0n);
    assert.equal(requestsPerMinute(workspace), 0n);
    assert.deepEqual(workspace?.overriddenLimits, [LimitName.REQUESTS_PER_MINUTE]);
    for (const name of [LimitName.UNSPECIFIED, 99 as LimitName])
      await refused(set(name, 1n), Code.InvalidArgument, { field: "overrides[0].name" });
    await refused(set(LimitName.REQUESTS_PER_DAY, -1n), Code.InvalidArgument, { field: "overrides[0].value" });
    await refused(
      operator.workspaces.setLimits({
        workspace: rival,
        overrides: [{ name: LimitName.REQUESTS_PER_DAY }],
      }),
      Code.InvalidArgument,
      { field: "overrides[0]" },
    );
    const given = await operator.workspaces.setTier({ workspace: rival, tier: "4" });
    assert.equal(given.workspace?.tier, "4");
    assert.equal(given.workspace?.tierOverridden, true);
    assert.equal((await operator.workspaces.getNextTier({ workspace: rival })).tier, undefined);
    await refused(operator.workspaces.setTier({ workspace: rival, tier: "5" }), Code.InvalidArgument, {
      field: "tier",
    });
    await refused(operator.workspaces.createWorkspace({ name: "x", kind: 9 as WorkspaceKind }), Code.InvalidArgument, {
      field: "kind",
    });
    await refused(operator.keys.updateKey({ id: "key_0" }), Code.InvalidArgument, { field: "name" });
    await refused(operator.usage.getUsage({ workspace: rival, interval: 9 as MetricsInterval }), Code.InvalidArgument, {
      field: "interval",
    });
    await refused(operator.usage.getUsage({}), Code.InvalidArgument, { field: "workspace" });
  });

  test("records every change in the audit log with its token and without secrets", async ({
    service,
    operator,
    database: { pool },
    acme: { name, id, token, tokenId, owner, rivalKey },
  }) => {
    const { key, secret } = await owner.keys.createKey({ name: "first" });
    const keyId = key?.id ?? "";
    await owner.keys.updateKey({ id: keyId, name: "second" });
    await owner.keys.revokeKey({ id: keyId });
    await owner.credits.setSpendLimit({ period: SpendPeriod.DAY, amount: "5.5" });
    await owner.credits.clearSpendLimit({ period: SpendPeriod.DAY });
    await operator.credits.purchase({ workspace: name, amount: "1", reference: "inv-1" });
    const actions = await pool.query<{ action: string; actor_kind: string }>(
      "select distinct action, actor_kind from audit where workspace_id = $1 order by 1, 2",
      [id],
    );
    assert.deepEqual(
      actions.map(({ action, actor_kind }) => `${actor_kind} ${action}`),
      [
        "operator credit.purchase",
        "owner key.create",
        "owner key.revoke",
        "owner key.update",
        "operator owner_token.create",
        "owner spend_limit.clear",
        "owner spend_limit.set",
        "operator workspace.create",
      ],
    );
    const by = await pool.query(
      "select distinct actor_id from audit where workspace_id = $1 and actor_kind = 'owner'",
      [id],
    );
    assert.deepEqual(by, [{ actor_id: tokenId }]);
    const [row] = await pool.query<{ text: string }>("select string_agg(a::text, ' ') as text from audit a");
    for (const value of [secret, token, rivalKey.secret, service.operatorToken, service.apiKey])
      assert.ok(!row?.text.includes(value));
  });

  test("serves reflection and health for every service", async ({ service }) => {
    const names = [WorkspaceService, CreditService, KeyService, UsageService].map(({ typeName }) => typeName);
    const grpc = createGrpcTransport({ baseUrl: service.rpcUrl });
    async function* ask() {
      yield { messageRequest: { case: "listServices" as const, value: "" } };
    }
    for await (const { messageResponse } of createClient(ServerReflection, grpc).serverReflectionInfo(ask())) {
      assert.ok(messageResponse.case === "listServicesResponse");
      const listed = messageResponse.value.service.map(({ name }) => name);
      assert.deepEqual(
        names.filter((name) => !listed.includes(name)),
        [],
      );
    }
    const { statuses } = await createClient(Health, grpc).list({});
    assert.deepEqual(
      names.filter((name) => !(name in statuses)),
      [],
    );
  });
});

function requestsPerMinute(of: Pick<Workspace, "limits"> | undefined): bigint | undefined {
  return of?.limits.find(({ name }) => name === LimitName.REQUESTS_PER_MINUTE)?.value;
}
