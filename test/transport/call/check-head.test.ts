import assert from "node:assert/strict";
import { describe } from "vitest";
import { test } from "../../helpers/fixtures.ts";
import { head, openRaw } from "../../helpers/raw.ts";
import type { TestService } from "../../helpers/service.ts";

const REST = "/v1/generate";
const RPC = "/chorus.v1.GenerationService/Generate";
const JSON_TYPE = "Content-Type: application/json\r\n";

for (const [name, addressOf, path] of [
  ["public", ({ url }: TestService) => url, REST],
  ["internal", ({ rpcUrl }: TestService) => rpcUrl, RPC],
] as const) {
  describe(`the ${name} listener`, () => {
    test("refuses what is no valid HTTP/1.1 request with the flat body, and closes", async ({ service, t }) => {
      const post = `POST ${path} HTTP/1.1\r\nHost: a\r\n${JSON_TYPE}`;
      const long = "a".repeat(20_000);
      const cases: [text: string, status: number, code?: string][] = [
        ["GET /x HTTP/1.1\r\n\r\n", 400],
        ["GET /x HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n", 400],
        ["GET /x HTTP/1.1\r\nHost: a\r\nContent-Type: a/b\r\ncontent-type: a/b\r\n\r\n", 400],
        [`POST ${path} HTTP/1.1\r\n${JSON_TYPE}Content-Length: 2\r\n\r\n{}`, 400],
        [`${post}Transfer-Encoding: xchunked, chunked\r\n\r\n0\r\n\r\n`, 400],
        [`${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`, 400],
        [`${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
        [`POST ${path} HTTP/1.0\r\nHost: a\r\n${JSON_TYPE}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
        ["GET /x HTTP/2.0\r\nHost: a\r\n\r\n", 400],
        ["GET /x HTTP/0.9\r\nHost: a\r\n\r\n", 400],
        [`GET /${long} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
        [`GET http://a/?${long} HTTP/1.1\r\nHost: a\r\n\r\n`, 414],
        [`GET /x HTTP/1.1\r\nHost: a\r\nX: ${long}\r\n\r\n`, 431],
        ["CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 404, "not_found"],
        [`CONNECT ${path} HTTP/1.1\r\nHost: a\r\n\r\n`, 404, "not_found"],
      ];
      for (const [text, status, code = "malformed_request"] of cases) {
        const about = text.slice(0, 90);
        const raw = await openRaw(t, addressOf(service), { allowHalfOpen: true });
        raw.send(text);
        const response = await raw.read();
        assert.equal(response.status, status, about);
        const { message, request_id, ...rest } = JSON.parse(response.body);
        assert.equal(typeof message, "string");
        assert.match(request_id, /^req_/);
        assert.deepEqual([rest, response.headers["x-request-id"]], [{ code }, request_id], about);
        assert.equal(response.headers.connection, "close", about);
        raw.socket.end();
        await raw.closed;
      }
    });

    test("serves a request with another expectation than 100-continue", async ({ service, t }) => {
      const raw = await openRaw(t, addressOf(service));
      const headers = { "X-API-Key": service.apiKey, "Content-Type": "application/json", "Content-Length": 14 };
      raw.send(`${head("POST", path, { ...headers, Expect: "foo" })}{"prompt":"a"}`);
      assert.equal((await raw.read()).status, 200);
    });

    test("answers the requests before CONNECT", async ({ service, t }) => {
      const raw = await openRaw(t, addressOf(service));
      const headers = { "X-API-Key": service.apiKey, "Content-Type": "application/json", "Content-Length": 14 };
      raw.send(`${head("POST", path, headers)}{"prompt":"a"}CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\nmore`);
      assert.equal((await raw.read()).status, 200);
      assert.equal((await raw.read()).status, 404);
      await raw.closed;
    });
  });
}
