import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import fc from "fast-check";
import { describe } from "vitest";
import { Failure } from "../../src/failure.ts";
import { CallerGone } from "../../src/service/request-context.ts";
import { createBodyBudget, MAX_BODY } from "../../src/transport/body-bounds.ts";
import { parseBody, readBody } from "../../src/transport/rest/body.ts";
import { test as base } from "../helpers/fixtures.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { until } from "../helpers/until.ts";

const MB = 1024 * 1024;

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service }) => {
  const post = { "X-API-Key": service.apiKey, "Content-Type": "application/json" };
  return { post };
});

test("the last quarter of the room is for small bodies, and a single large body always fits", () => {
  const budget = createBodyBudget(100 * MB);
  budget.take(60 * MB, 0);
  assert.throws(() => budget.take(16 * MB, 0), isOverloaded);
  for (let i = 0; i < 40; i++) budget.take(MB, 0);
  assert.throws(() => budget.take(1, 0), isOverloaded);
  budget.give(60 * MB);
  assert.throws(() => budget.take(60 * MB, 0), isOverloaded);
  budget.give(40 * MB);
  // A body of unstated length counts as small until it is large.
  budget.take(75 * MB, 0);
  budget.take(MB, 0);
  assert.throws(() => budget.take(1, MB), isOverloaded);

  const least = createBodyBudget(MAX_BODY);
  least.take(MAX_BODY, 0);
  least.give(MAX_BODY);
  least.take(MAX_BODY, 0);
});

test("a body is the same text however it is split, and its room is given back once", async () => {
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: "binary" }), fc.array(fc.nat(40)), fc.boolean(), async (text, cuts, stated) => {
      const bytes = Buffer.from(text);
      const chunks: Buffer[] = [];
      let from = 0;
      for (const length of cuts) {
        chunks.push(bytes.subarray(from, from + length));
        from += length;
      }
      chunks.push(bytes.subarray(from));
      const budget = tally();
      const body = await readBody(
        message(chunks, stated ? { "content-length": `${bytes.length}` } : {}),
        budget,
        () => undefined,
      );
      assert.equal(body.text, text.replace(/^\ufeff/, ""));
      assert.equal(budget.used, bytes.length);
      body.release();
      body.release();
      assert.equal(budget.used, 0);
    }),
  );
});

test("bytes that are no UTF-8 are refused wherever the text is split, and their room is free", async () => {
  const bytes = Buffer.from([0x7b, 0xe6, 0xbc, 0xa2, 0xe6, 0xbc]);
  for (let at = 0; at < bytes.length; at++) {
    const budget = tally();
    const request = message([bytes.subarray(0, at), bytes.subarray(at)]);
    await assert.rejects(
      readBody(request, budget, () => undefined),
      (error) => error instanceof Failure && error.kind === "invalid_json" && /UTF-8/.test(error.message),
    );
    assert.equal(budget.used, 0);
  }
});

test("a body whose sender has gone already is not waited for", async () => {
  const request = message([]);
  request.destroy();
  await assert.rejects(
    readBody(request, createBodyBudget(MAX_BODY), () => assert.fail("nobody is there to go on")),
    CallerGone,
  );
});

test("refuses a body of more than 100,000 values, and does not count the content of strings", async () => {
  const read = (text: string) => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) =>
      bytes.subarray(i * 65_536, (i + 1) * 65_536),
    );
    return readBody(message(chunks), tally(), () => undefined);
  };
  const list = (count: number) => `{"a":[${"0,".repeat(count - 1)}0]}`;
  assert.equal((await read(list(99_000))).text, list(99_000));
  // The last one is the worst of 60 MB: it takes 10 s to parse.
  for (const text of [
    list(100_001),
    `{"a":${"[".repeat(100_001)}`,
    `{"a":[${"{},".repeat(50_001)}0]}`,
    `{"a":[${"[],".repeat(20 * MB)}0]}`,
  ]) {
    await assert.rejects(read(text), (error) => error instanceof Failure && error.kind === "request_too_large");
  }
  for (const text of [
    JSON.stringify({ [`${"[{,".repeat(100_000)}\\`]: `\\"${',"'.repeat(100_000)}\\\\` }),
    `{"a":${"\\\\".repeat(10 * MB)}"`,
    `{"a":"${'\\"'.repeat(10 * MB)}`,
  ])
    assert.equal((await read(text)).text, text);
});

test("parseBody agrees with JSON.parse", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(parseBody(text), JSON.parse(text));
    }),
  );
});

describe("bodies through the public door", () => {
  test("64 MB + 1 byte is refused unread, by what it says of itself", async ({ service, shared: { post }, t }) => {
    const raw = await openRaw(t, service.url);
    raw.send(head("POST", "/v1/generate", { ...post, "Content-Length": MAX_BODY + 1 }));
    const refused = await raw.read();
    assert.equal(refused.status, 413);
    const { message, request_id, ...rest } = JSON.parse(refused.body);
    assert.deepEqual(rest, { code: "request_too_large" });
    assert.match(message, /67,108,864/);
    await raw.closed;
  });

  test("64 MB are taken; without a stated length the first byte over is refused, and the end not waited for", async ({
    service,
    shared: { post },
    t,
  }) => {
    const start = '{"prompt":"a","x":"';
    const whole = Buffer.alloc(MAX_BODY, "x");
    whole.write(start);
    whole.write('"}', MAX_BODY - 2);
    const stated = await openRaw(t, service.url);
    stated.send(head("POST", "/v1/generate", { ...post, "Content-Length": MAX_BODY }));
    stated.send(whole);
    assert.equal((await stated.read()).status, 200);

    const chunked = await openRaw(t, service.url);
    chunked.send(head("POST", "/v1/generate", { ...post, "Transfer-Encoding": "chunked" }));
    chunked.send(`${MAX_BODY.toString(16)}\r\n`);
    chunked.send(whole);
    chunked.send("\r\n1\r\nx\r\n");
    assert.equal((await chunked.read()).status, 413);
  });

  test("64 MB with a bad key are refused at once, unread", async ({ service, shared: { post }, t }) => {
    const raw = await openRaw(t, service.url);
    raw.send(head("POST", "/v1/generate", { ...post, "X-API-Key": "bad", "Content-Length": MAX_BODY }));
    raw.send(Buffer.alloc(MAX_BODY));
    assert.equal((await raw.read()).status, 401);
    assert.ok(raw.socket.writableLength > 40 * MB, `${raw.socket.writableLength} bytes were not taken`);
  });

  test("a body that there is no room for is not asked for with 100 Continue", async ({
    service,
    shared: { post },
    t,
  }) => {
    const holders = await Promise.all(Array.from({ length: 3 }, () => openRaw(t, service.url)));
    const headers = { ...post, Expect: "100-continue", "Content-Length": 60 * MB };
    for (const holder of holders) {
      holder.send(head("POST", "/v1/generate", headers));
      assert.equal((await holder.read()).status, 100);
    }
    const late = await openRaw(t, service.url);
    late.send(head("POST", "/v1/generate", headers));
    assert.equal((await late.read()).status, 503);
    // A small one still fits, and so does a large one when a sender of a large one leaves.
    assert.equal((await service.post("/v1/generate", { prompt: "small" })).status, 200);
    holders[0]?.socket.destroy();
    await until(async () => {
      const next = await openRaw(t, service.url);
      next.send(head("POST", "/v1/generate", headers));
      const { status } = await next.read();
      next.socket.destroy();
      return status === 100;
    });
  });
});

function isOverloaded(error: unknown): boolean {
  return error instanceof Failure && error.kind === "overloaded" && error.retryAfterMs === 1_000;
}

/** Room without an end. */
function tally() {
  return {
    used: 0,
    take(bytes: number) {
      this.used += bytes;
    },
    give(bytes: number) {
      this.used -= bytes;
    },
  };
}

function message(chunks: Buffer[], headers: Record<string, string> = {}): IncomingMessage {
  return Object.assign(Readable.from(chunks, { objectMode: true }), { headers }) as unknown as IncomingMessage;
}
