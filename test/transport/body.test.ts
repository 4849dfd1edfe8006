import assert from "node:assert/strict";
import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import fc from "fast-check";
import { describe } from "vitest";
import { Failure } from "../../src/failure.ts";
import { CallerGone } from "../../src/service/request-context.ts";
import { createBodyBudget, MAX_BODY } from "../../src/transport/body-bounds.ts";
import { decodeText, parseBody } from "../../src/transport/decode-request.ts";
import { type Body, readBody } from "../../src/transport/rest/body.ts";
import { test as base } from "../helpers/fixtures.ts";
import { head, openRaw } from "../helpers/raw.ts";
import { until } from "../helpers/until.ts";

const MB = 1024 * 1024;

const test = base.extend("shared", { scope: "file" }, async ({ serviceOfFile: service }) => {
  const post = { "X-API-Key": service.apiKey, "Content-Type": "application/json" };
  return { post };
});

test("reserves the last quarter of the budget for small bodies, and always accepts a single large body", () => {
  const budget = createBodyBudget(100 * MB);
  budget.take(60 * MB, 0);
  assert.throws(() => budget.take(16 * MB, 0), isOverloaded);
  for (let i = 0; i < 40; i++) budget.take(MB, 0);
  assert.throws(() => budget.take(1, 0), isOverloaded);
  budget.give(60 * MB);
  assert.throws(() => budget.take(60 * MB, 0), isOverloaded);
  budget.give(40 * MB);
  // A body without Content-Length counts as small until it is large.
  budget.take(75 * MB, 0);
  budget.take(MB, 0);
  assert.throws(() => budget.take(1, MB), isOverloaded);

  const least = createBodyBudget(MAX_BODY);
  least.take(MAX_BODY, 0);
  least.give(MAX_BODY);
  least.take(MAX_BODY, 0);
});

function textOf({ blocks }: Body): string {
  return decodeText(blocks.join());
}

test("reads the same text for any split into chunks, and releases the budget once", async () => {
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
      const budget = unlimitedBudget();
      const body = await readBody(
        message(chunks, stated ? { "content-length": `${bytes.length}` } : {}),
        budget,
        () => undefined,
      );
      assert.equal(textOf(body), text.replace(/^\ufeff/, ""));
      assert.equal(budget.used, bytes.length);
      body.release();
      body.release();
      assert.equal(budget.used, 0);
    }),
  );
});

test("refuses invalid UTF-8 for any split into chunks", async () => {
  const bytes = Buffer.from([0x7b, 0xe6, 0xbc, 0xa2, 0xe6, 0xbc]);
  for (let at = 0; at < bytes.length; at++) {
    const request = message([bytes.subarray(0, at), bytes.subarray(at)]);
    const body = await readBody(request, unlimitedBudget(), () => undefined);
    assert.throws(
      () => textOf(body),
      (error) => error instanceof Failure && error.kind === "invalid_json" && /UTF-8/.test(error.message),
    );
  }
});

test("rejects at once when the sender has already left", async () => {
  const request = message([]);
  request.destroy();
  await assert.rejects(
    readBody(request, createBodyBudget(MAX_BODY), () => assert.fail("sent 100 Continue to a caller that left")),
    CallerGone,
  );
});

test("refuses a body of more than 100,000 values and does not count the content of strings", async () => {
  const read = (text: string) => {
    const bytes = Buffer.from(text);
    const chunks = Array.from({ length: Math.ceil(bytes.length / 65_536) }, (_, i) =>
      bytes.subarray(i * 65_536, (i + 1) * 65_536),
    );
    return readBody(message(chunks), unlimitedBudget(), () => undefined);
  };
  const list = (count: number) => `{"a":[${"0,".repeat(count - 1)}0]}`;
  assert.equal(textOf(await read(list(99_000))), list(99_000));
  // The last body would take 10 s to parse.
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
    assert.equal(textOf(await read(text)), text);
});

test("parseBody returns the same value as JSON.parse", () => {
  fc.assert(
    fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
      const text = JSON.stringify(value);
      assert.deepEqual(parseBody(text), JSON.parse(text));
    }),
  );
});

describe("bodies over the public listener", () => {
  test("refuses 64 MB + 1 byte by Content-Length, without reading the body", async ({
    service,
    shared: { post },
    t,
  }) => {
    const raw = await openRaw(t, service.url);
    raw.send(head("POST", "/v1/generate", { ...post, "Content-Length": MAX_BODY + 1 }));
    const refused = await raw.read();
    assert.equal(refused.status, 413);
    const { message, request_id, ...rest } = JSON.parse(refused.body);
    assert.deepEqual(rest, { code: "request_too_large" });
    assert.match(message, /67,108,864/);
    await raw.closed;
  });

  test("accepts 64 MB, and refuses a chunked body at the first byte beyond", async ({
    service,
    shared: { post },
    t,
  }) => {
    const start = '{"prompt":"a","x":"';
    const body = Buffer.alloc(MAX_BODY, "x");
    body.write(start);
    body.write('"}', MAX_BODY - 2);
    const stated = await openRaw(t, service.url);
    stated.send(head("POST", "/v1/generate", { ...post, "Content-Length": MAX_BODY }));
    stated.send(body);
    assert.equal((await stated.read()).status, 200);

    const chunked = await openRaw(t, service.url);
    chunked.send(head("POST", "/v1/generate", { ...post, "Transfer-Encoding": "chunked" }));
    chunked.send(`${MAX_BODY.toString(16)}\r\n`);
    chunked.send(body);
    chunked.send("\r\n1\r\nx\r\n");
    assert.equal((await chunked.read()).status, 413);
  });

  test("refuses 64 MB with a bad key without reading the body", async ({ service, shared: { post }, t }) => {
    const raw = await openRaw(t, service.url);
    raw.send(head("POST", "/v1/generate", { ...post, "X-API-Key": "bad", "Content-Length": MAX_BODY }));
    raw.send(Buffer.alloc(MAX_BODY));
    assert.equal((await raw.read()).status, 401);
    assert.ok(raw.socket.writableLength > 40 * MB, `${raw.socket.writableLength} bytes were not read`);
  });

  test("refuses a body that exceeds the budget instead of sending 100 Continue", async ({
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
    // A small body still fits. A large body fits when the sender of another large body leaves.
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

/** A budget without a limit. */
function unlimitedBudget() {
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
