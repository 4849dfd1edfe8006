import assert from "node:assert/strict";
import { describe } from "vitest";
import { pdf } from "../engine/attachments/files.ts";
import { adminOf } from "../helpers/admin.ts";
import { test as base } from "../helpers/fixtures.ts";
import { setLimits } from "../helpers/limits.ts";
import { until } from "../helpers/until.ts";
import { CLIENTS, type ForeignClient } from "./clients.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const ITEM = '{"name":"bolt","count":12}';

/** Comment lines come between the events of a stream, as they do when models are slow. */
const KEEP_ALIVE = { CHORUS_STREAM_MS: '{"keepAliveMs":20}' };

const test = base
  .extend("env", { scope: "file" }, KEEP_ALIVE)
  .extend("connect", ({ service }) => (name: string, apiKey = service.apiKey, retries = 0) => {
    const statuses: number[] = [];
    const counted: typeof fetch = async (...parameters) => {
      const response = await fetch(...parameters);
      statuses.push(response.status);
      return response;
    };
    const create = CLIENTS[name] ?? assert.fail(name);
    return { client: create({ baseURL: `${service.url}/v1`, apiKey, retries, fetch: counted }), statuses };
  });

async function refusalOf(client: ForeignClient, call: Promise<unknown>) {
  return call.then(
    () => assert.fail("The call did not fail."),
    (error: unknown) => client.refusal(error),
  );
}

describe.each(Object.keys(CLIENTS))("%s", (name) => {
  test("gets a whole answer with its tokens", async ({ connect, vendor }) => {
    vendor.reply({ text: "Good morning." });
    const { client } = connect(name);
    assert.deepEqual(await client.ask("Hello"), {
      text: "Good morning.",
      finish: "stop",
      inputTokens: 1,
      outputTokens: 3,
    });
  });

  test("gets a streamed answer with its tokens", async ({ connect, vendor }) => {
    vendor.reply({ text: ["Good", " morning", "."], betweenMs: 100 });
    const { client } = connect(name);
    const pieces: string[] = [];
    const { text, finish, outputTokens } = await client.stream("Hello", (piece) => void pieces.push(piece));
    assert.deepEqual([text, pieces.join(""), finish, outputTokens], ["Good morning.", "Good morning.", "stop", 3]);
    assert.ok(pieces.length > 1);
  });

  test("gets an object that is valid against a schema, whole and streamed", async ({ connect, vendor }) => {
    const { client } = connect(name);
    for (const streamed of [false, true]) {
      vendor.reply({ text: `Here it is: ${ITEM}` });
      assert.deepEqual(await client.object("Twelve bolts.", streamed), JSON.parse(ITEM));
    }
    vendor.always({ text: '{"name":"bolt"}' });
    assert.equal((await refusalOf(client, client.object("Twelve bolts.", false))).status, 502);
  });

  test("sends an image and a file", async ({ connect, vendor }) => {
    const { client } = connect(name);
    const file = pdf(["The code is 4711."]).toString("base64");
    assert.equal(await client.withFiles("What is it?", PNG, file), "Hello from openai.");
    const sent = vendor.calls[0]?.body ?? "";
    assert.ok(sent.includes(PNG) && sent.includes("The code is 4711.") && sent.includes("What is it?"), sent);
  });

  test("ends the work when it cancels", async ({ connect, vendor }) => {
    const { client } = connect(name);
    vendor.reply({ end: "silent" });
    const whole = new AbortController();
    const asked = client.ask("Hello", whole.signal).then(
      () => "answered",
      () => "cancelled",
    );
    await until(() => vendor.calls.length === 1);
    whole.abort();
    assert.equal(await asked, "cancelled");
    assert.equal(await vendor.calls[0]?.ended, "aborted");

    vendor.reply({ text: ["a", "b"], end: "hang", after: 1 });
    const stream = new AbortController();
    const streamed = client
      .stream("Hello", () => stream.abort(), stream.signal)
      .then(
        () => "answered",
        () => "cancelled",
      );
    assert.equal(await streamed, "cancelled");
    assert.equal(await vendor.calls[1]?.ended, "aborted");
  });

  test("reads the failure of a stream that breaks", async ({ connect, vendor }) => {
    const { client } = connect(name);
    vendor.always({ text: ["a", "b"], end: "error", after: 1 });
    let text = "";
    const { text: message } = await refusalOf(
      client,
      client.stream("Hello", (piece) => {
        text += piece;
      }),
    );
    assert.equal(text, "a");
    assert.match(message, /No model could answer/);
  });

  test("is refused for a bad key and for lack of credit", async ({ connect, database: { pool } }) => {
    const { client } = connect(name, "ck_unknown");
    assert.equal((await refusalOf(client, client.ask("Hello"))).status, 401);
    const workspace = `empty-${Object.keys(CLIENTS).indexOf(name)}`;
    const { workspaces, keys } = adminOf(pool);
    await workspaces.createWorkspace({ name: workspace });
    const { secret } = await keys.createKey({ workspace });
    const poor = connect(name, secret, 2);
    const { status, text } = await refusalOf(poor.client, poor.client.ask("Hello"));
    assert.deepEqual([status, poor.statuses], [402, [402]]);
    assert.match(text, /insufficient_credit|billing_error/);
  });

  test("is refused by a rate limit", async ({ connect, database: { pool } }) => {
    await setLimits(pool, "default", [{ name: "requests_per_minute", to: 0n }]);
    const { client } = connect(name);
    for (const call of [() => client.ask("Hello"), () => client.stream("Hello", () => undefined)]) {
      const { status, text } = await refusalOf(client, call());
      assert.equal(status, 429);
      assert.match(text, /requests_per_minute/);
    }
    await setLimits(pool, "default", [{ name: "requests_per_minute", to: "default" }]);
  });

  test("sends a request again that a busy workspace could not take", async ({
    connect,
    service,
    database: { pool },
    vendor,
  }) => {
    await setLimits(pool, "default", [{ name: "concurrent_requests", to: 1n }]);
    vendor.reply({ end: "silent" });
    const leave = new AbortController();
    const headers = { authorization: `Bearer ${service.apiKey}`, "content-type": "application/json" };
    const options = { method: "POST", headers, body: '{"prompt":"a"}', signal: leave.signal };
    const first = fetch(`${service.url}/v1/generate`, options).catch(() => undefined);
    await until(() => vendor.calls.length === 1);
    const { client, statuses } = connect(name, service.apiKey, 5);
    const asked = client.ask("Hello");
    await until(() => statuses.includes(429));
    leave.abort();
    assert.equal((await asked).text, "Hello from openai.");
    assert.equal(statuses.at(-1), 200);
    await first;
    await setLimits(pool, "default", [{ name: "concurrent_requests", to: "default" }]);
  });
});
