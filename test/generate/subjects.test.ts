import assert from "node:assert/strict";
import { createClient } from "@connectrpc/connect";
import fc from "fast-check";
import { GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import type { Pool } from "../../src/store/pool.ts";
import { adminOf } from "../helpers/admin.ts";
import { codePoint } from "../helpers/code-point.ts";
import { test } from "../helpers/fixtures.ts";
import { rpcFailure, transports } from "../helpers/rpc.ts";
import { until } from "../helpers/until.ts";

interface Answer {
  id: string;
  request_id: string;
  notices: unknown[];
  field?: string;
  message?: string;
  error?: { param?: string; message: string };
}

/** For whom a request is recorded, when it has been posted. */
async function recorded(pool: Pool, requestId: string) {
  let row: { end_user: string | null; tags: Record<string, string> | null } | undefined;
  await until(async () => {
    [row] = await pool.query("select end_user, tags from generations where request_id = $1", [requestId]);
    return row !== undefined;
  });
  return [row?.end_user ?? undefined, row?.tags ?? undefined];
}

const bodyOf = async (response: Response) => (await response.json()) as Answer;

test("records the user and the tags of a body, else of the headers", async ({ service, database: { pool } }) => {
  const body = { prompt: "Hello", user: "u-1", tags: { team: "search", "cost.center": "ü 1" } };
  const headers = { "X-Chorus-User": "u-2", "X-Chorus-Tags": " team = ads , project=a%20b;private , x=%C3%BC%2C" };
  const inHeaders = { team: "ads", project: "a b", x: "ü," };
  const cases: [body: object, headers: Record<string, string>, expected: unknown[]][] = [
    [{ prompt: "Hello" }, {}, [undefined, undefined]],
    [{ prompt: "Hello", user: "", tags: null }, {}, [undefined, undefined]],
    [{ prompt: "Hello", user: null, tags: {} }, { "X-Chorus-User": "" }, [undefined, undefined]],
    [body, {}, [body.user, body.tags]],
    [body, headers, [body.user, body.tags]],
    [{ prompt: "Hello" }, headers, ["u-2", inHeaders]],
    [{ prompt: "Hello", user: "u-1" }, headers, ["u-1", inHeaders]],
    [{ prompt: "Hello", tags: body.tags }, headers, ["u-2", body.tags]],
  ];
  for (const [sent, head, expected] of cases) {
    const answer = await bodyOf(await service.post("/v1/generate", sent, head));
    assert.deepEqual(answer.notices, [], JSON.stringify(answer));
    assert.deepEqual(await recorded(pool, answer.request_id), expected, JSON.stringify([sent, head]));
  }
  // A body that a thread reads.
  const large = { ...body, prompt: "Hello ".repeat(20_000) };
  const { request_id } = await bodyOf(await service.post("/v1/generate", large, headers));
  assert.deepEqual(await recorded(pool, request_id), [body.user, body.tags]);
});

test("records the user and the tags over every protocol of RPC", async ({ service, database: { pool } }) => {
  for (const [name, transport] of Object.entries(transports(service.rpcUrl))) {
    const client = createClient(GenerationService, transport);
    const key = { "x-api-key": service.apiKey };
    const tags = { team: "search", __proto__x: "1" };
    const whole = await client.generate({ prompt: "Hello", user: name, tags: { team: "search" } }, { headers: key });
    assert.deepEqual(await recorded(pool, whole.requestId), [name, { team: "search" }]);
    const headers = { ...key, "x-chorus-user": name, "x-chorus-tags": "team=a" };
    let requestId = "";
    for await (const { event } of client.streamGenerate({ prompt: "Hello" }, { headers }))
      if (event.case === "done") requestId = event.value.requestId;
    assert.deepEqual(await recorded(pool, requestId), [name, { team: "a" }]);
    const failure = await rpcFailure(client.generate({ prompt: "Hello", tags: { ...tags, Team: "b" } }, { headers }));
    assert.deepEqual([failure.code, failure.detail?.field], ["InvalidArgument", "tags"], name);
  }
});

test("takes the user and the tags from OpenAI's parameters", async ({ service, database: { pool } }) => {
  const messages = [{ role: "user", content: "Hello" }];
  const metadata = { team: "search", "User ID": "7", long: "x".repeat(65), empty: "" };
  const path = "/v1/chat/completions";
  const ask = async (body: object, headers?: Record<string, string>) => {
    const response = await service.post(path, { messages, ...body }, headers);
    return { requestId: response.headers.get("x-request-id") ?? "", ...(await bodyOf(response)) };
  };
  for (const [body, expected] of [
    [{ user: "u", metadata }, ["u", { team: "search" }]],
    [{ user: "u", safety_identifier: "s" }, ["s", undefined]],
    [{ metadata: null }, ["h", undefined]],
  ] as const) {
    const { requestId } = await ask(body, { "X-Chorus-User": "h" });
    assert.deepEqual(await recorded(pool, requestId), expected);
  }
  assert.equal((await ask({ user: "u".repeat(129) })).error?.param, "user");
  assert.equal((await ask({ safety_identifier: "u".repeat(129) })).error?.param, "safety_identifier");
  assert.equal((await ask({ metadata: { a: 1 } })).error?.param, "metadata");
});

test("refuses a malformed user and malformed tags, naming the field", async ({ service, vendor }) => {
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`t${i}`, "v"]));
  const cases: [body: object, headers: Record<string, string>, field: string][] = [
    [{ user: "u".repeat(129) }, {}, "user"],
    [{ user: "😀".repeat(129) }, {}, "user"],
    [{ user: "a\nb" }, {}, "user"],
    [{ user: "a\0b" }, {}, "user"],
    [{ user: 7 }, {}, "user"],
    [{ tags: many }, {}, "tags"],
    [{ tags: { Team: "a" } }, {}, "tags"],
    [{ tags: { "": "a" } }, {}, "tags"],
    [{ tags: { ["t".repeat(33)]: "a" } }, {}, "tags"],
    [{ tags: { team: "" } }, {}, "tags.team"],
    [{ tags: { team: "v".repeat(65) } }, {}, "tags.team"],
    [{ tags: { team: "a\u0000" } }, {}, "tags.team"],
    [{ tags: { team: 1 } }, {}, "tags"],
    [{ tags: { team: null } }, {}, "tags"],
    [{ tags: ["team"] }, {}, "tags"],
    [{ tags: "team=a" }, {}, "tags"],
    [{}, { "X-Chorus-User": "u".repeat(129) }, "X-Chorus-User"],
    [{}, { "X-Chorus-Tags": "team" }, "X-Chorus-Tags"],
    [{}, { "X-Chorus-Tags": "=a" }, "X-Chorus-Tags"],
    [{}, { "X-Chorus-Tags": "team=" }, "X-Chorus-Tags"],
    [{}, { "X-Chorus-Tags": "team=%zz" }, "X-Chorus-Tags"],
    [{}, { "X-Chorus-Tags": "team=a,team=b" }, "X-Chorus-Tags"],
    [{}, { "X-Chorus-Tags": "Team=a" }, "X-Chorus-Tags"],
  ];
  for (const [body, headers, field] of cases) {
    const response = await service.post("/v1/generate", { prompt: "Hello", ...body }, headers);
    const answer = await bodyOf(response);
    const seen = JSON.stringify([body, headers, answer]);
    assert.deepEqual([response.status, answer.field], [422, field], seen);
    assert.doesNotMatch(answer.message ?? "", /uuuu|vvvv|Team/, seen);
  }
  // Characters are code points.
  const longest = { user: "😀".repeat(128), tags: { ["t".repeat(32)]: "😀".repeat(64) } };
  assert.equal((await service.post("/v1/generate", { prompt: "Hello", ...longest })).status, 200);
  assert.equal(vendor.calls.length, 1);
});

test("accepts exactly the tags of the contract", async ({ service }) => {
  const text = fc.oneof(fc.string({ unit: codePoint, maxLength: 70 }), fc.stringMatching(/^[a-zA-Z0-9_.-]{0,34}$/));
  await fc.assert(
    fc.asyncProperty(fc.dictionary(text, text, { maxKeys: 10 }), async (tags) => {
      const entries = Object.entries(tags).map(([name, value]) => [name, value.toWellFormed()] as const);
      const isRight = ([name, value]: readonly [string, string]) =>
        /^[a-z0-9_.-]{1,32}$/.test(name) && value !== "" && [...value].length <= 64 && !/\p{Cc}/u.test(value);
      const response = await service.post("/v1/generate", JSON.stringify({ prompt: "Hello", tags }));
      assert.equal(response.status, entries.length <= 8 && entries.every(isRight) ? 200 : 422, await response.text());
    }),
    { numRuns: 60 },
  );
});

test("a key sets tags, and can refuse others", async ({ service, database: { pool } }) => {
  const { keys } = adminOf(pool);
  const fixed = { team: "search", project: "a" };
  const { key, secret } = await keys.createKey({ workspace: "default", tags: { fixed, forbidsOthers: true } });
  assert.deepEqual({ ...key?.tags?.fixed }, fixed);
  const ask = async (body: object, headers: Record<string, string> = {}) =>
    bodyOf(await service.post("/v1/generate", { prompt: "Hello", ...body }, { "x-api-key": secret, ...headers }));
  assert.deepEqual(await recorded(pool, (await ask({})).request_id), [undefined, fixed]);
  const same = await ask({ user: "u", tags: { team: "search" } });
  assert.deepEqual(await recorded(pool, same.request_id), ["u", fixed]);
  assert.equal((await ask({ tags: { team: "ads" } })).field, "tags.team");
  assert.equal((await ask({ tags: { other: "b" } })).field, "tags.other");
  assert.equal((await ask({}, { "X-Chorus-Tags": "team=ads" })).field, "X-Chorus-Tags");

  // Without a prohibition, tags of the request are added.
  await keys.updateKey({ id: key?.id ?? "", tags: { fixed } });
  await until(async () => (await ask({ tags: { other: "b" } })).field === undefined);
  for (const other of ["other", "constructor"]) {
    const added = await ask({ tags: { [other]: "b" } });
    assert.deepEqual(await recorded(pool, added.request_id), [undefined, { ...fixed, [other]: "b" }], other);
  }
  const seven = Object.fromEntries(Array.from({ length: 7 }, (_, i) => [`t${i}`, "v"]));
  assert.equal((await ask({ tags: seven })).field, "tags");

  const renamed = await keys.updateKey({ id: key?.id ?? "", name: "renamed" });
  assert.deepEqual({ ...renamed.key?.tags?.fixed }, fixed);
  const cleared = await keys.updateKey({ id: key?.id ?? "", tags: {} });
  assert.equal(cleared.key?.tags, undefined);
  const wrong = keys.createKey({ workspace: "default", tags: { fixed: { Team: "a" } } });
  await assert.rejects(async () => wrong, { field: "tags.fixed" });
});

test("metadata of OpenAI's format are tags as far as those of the key leave room", async ({
  service,
  database: { pool },
}) => {
  const { keys } = adminOf(pool);
  const fixed = { team: "search", project: "a" };
  const { secret } = await keys.createKey({ workspace: "default", tags: { fixed } });
  const numbered = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, i) => [`t${i}`, "v"]));
  for (const [path, body] of [
    ["/v1/chat/completions", { messages: [{ role: "user", content: "Hello" }] }],
    ["/v1/responses", { input: "Hello" }],
  ] as const) {
    const metadata = { team: "search", ...numbered(15) };
    const response = await service.post(path, { ...body, metadata }, { "x-api-key": secret });
    assert.equal(response.status, 200, await response.text());
    const id = response.headers.get("x-request-id") ?? "";
    assert.deepEqual(await recorded(pool, id), [undefined, { ...fixed, ...numbered(6) }]);
  }
});

test("the tag of a developer is beside the tags that the key fixes", async ({ service, database: { pool } }) => {
  const { keys } = adminOf(pool);
  const [{ id: workspaceId = "" } = {}] = await pool.query<{ id: string }>(
    "select id from workspaces where name = 'default'",
  );
  await pool.query("insert into people values ('per_tags', 'https://id', 'ann', 'Ann', '', now())");
  await pool.query("insert into members values ($1, 'per_tags', 'developer', false, now())", [workspaceId]);
  const ann = { kind: "member", id: "per_tags", workspaceId, role: "developer" } as const;
  const fixed = Object.fromEntries(Array.from({ length: 8 }, (_, i) => [`t${i}`, "v"]));
  const { secret } = await keys.createKey({ tags: { fixed } }, ann);
  const ask = async (tags: object) =>
    bodyOf(await service.post("/v1/generate", { prompt: "Hello", tags }, { "x-api-key": secret }));
  const { request_id: id } = await ask({});
  assert.deepEqual(await recorded(pool, id), [undefined, { ...fixed, "chorus.member": ann.id }]);
  assert.equal((await ask({ other: "b" })).field, "tags");
});

test("an idempotency key belongs to the subjects of the request, too", async ({ service, vendor }) => {
  const ask = (headers: Record<string, string>) =>
    service.post("/v1/generate", { prompt: "Hello" }, { "Idempotency-Key": "one", ...headers });
  const first = await bodyOf(await ask({ "X-Chorus-User": "u" }));
  assert.equal((await bodyOf(await ask({ "X-Chorus-User": "u" }))).id, first.id);
  assert.equal((await ask({ "X-Chorus-User": "other" })).status, 422);
  assert.equal(vendor.calls.length, 1);
});

test("a repeated request may have its tags in another order", async ({ service, vendor }) => {
  const ask = (tags: object) =>
    service.post("/v1/generate", { prompt: "Hello", tags }, { "Idempotency-Key": "tags-1" });
  const first = await bodyOf(await ask({ b: "2", "a-1": "3", a: "1" }));
  assert.equal((await bodyOf(await ask({ a: "1", b: "2", "a-1": "3" }))).id, first.id);
  assert.equal((await ask({ a: "2", b: "1", "a-1": "3" })).status, 422);
  assert.equal(vendor.calls.length, 1);
});
