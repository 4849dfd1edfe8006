import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { gunzipSync } from "node:zlib";
import { describe } from "vitest";
import { test as base } from "../../helpers/fixtures.ts";
import { fixture } from "../../helpers/lifetime.ts";
import { openRaw } from "../../helpers/raw.ts";
import { startService } from "../../helpers/service.ts";

const test = base.extend(
  "shared",
  { scope: "file" },
  fixture(async (t) => {
    const { url } = await startService(t);
    return { url };
  }),
);

describe("serves the API reference without a key", () => {
  test("/openapi.json returns the document of the contract", async ({ shared: { url } }) => {
    const response = await fetch(`${url}/openapi.json`);
    assert.equal(response.headers.get("content-type"), "application/json; charset=utf-8");
    assert.equal(
      await response.text(),
      await readFile(new URL("../../../gen/openapi/openapi.json", import.meta.url), "utf8"),
    );
    const tag = response.headers.get("etag") ?? "";
    const again = await fetch(`${url}/openapi.json`, { headers: { "If-None-Match": tag } });
    assert.equal(again.status, 304);
    assert.equal(await again.text(), "");
  });

  test("/docs loads nothing from other hosts and has no inline script", async ({ shared: { url } }) => {
    const response = await fetch(`${url}/docs`);
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'; script-src 'self';/);
    assert.doesNotMatch(policy, /https?:|\*|unsafe-eval/);
    const page = await response.text();
    assert.doesNotMatch(page, /https?:\/\/|<style|\son\w+=/);
    const scripts = [...page.matchAll(/<script([^>]*)>(.*?)<\/script>/g)];
    for (const [, attributes = "", inline] of scripts) {
      assert.equal(inline, "");
      const source = /src="([^"]+)"/.exec(attributes)?.[1] ?? assert.fail(attributes);
      const script = await fetch(new URL(source, `${url}/docs`));
      assert.equal(script.status, 200, source);
      assert.equal(script.headers.get("content-type"), "text/javascript; charset=utf-8");
      assert.ok((await script.text()).includes("createApiReference"), source);
    }
    assert.equal(scripts.length, 2);
  });

  test("/docs links the guides, the licence and the version, and no link of a page leads nowhere", async ({
    shared: { url },
  }) => {
    const page = await (await fetch(`${url}/docs`)).text();
    const { version } = JSON.parse(await readFile(new URL("../../../package.json", import.meta.url), "utf8"));
    assert.ok(page.includes(`Version ${version}`));
    const paths = [...page.matchAll(/<a href="([^"]+)"/g)].map(([, path = ""]) => path);
    for (const path of ["docs/guides", "docs/license", "openapi.json"]) assert.ok(paths.includes(path), path);
    const list = await (await fetch(`${url}/docs/guides`)).text();
    const known = new Set([...list.matchAll(/<a href="(\/docs\/[^"]+)">/g)].map(([, path = ""]) => path));
    assert.ok(known.size >= 70);
    for (const path of known) {
      const response = await fetch(url + path);
      assert.equal(response.headers.get("content-type"), "text/html; charset=utf-8", path);
      assert.match(response.headers.get("content-security-policy") ?? "", /^default-src 'none'/);
      const guide = await response.text();
      assert.match(guide, /<h1 id="[^"]+">/, path);
      assert.doesNotMatch(guide, /<style|\son\w+=/, path);
      for (const [, to = ""] of guide.matchAll(/(?:href|src)="(\/docs[^"#]*)/g))
        if (!known.has(to)) assert.equal((await fetch(url + to, { method: "HEAD" })).status, 200, `${path}: ${to}`);
    }
    assert.match(await (await fetch(`${url}/docs/license`)).text(), /Apache License/);
  });

  test("compresses the large script for callers that accept gzip", async ({ shared: { url }, t }) => {
    const sizes: number[] = [];
    for (const accepts of ["br, gzip", "identity", "gzip;q=0"]) {
      const raw = await openRaw(t, url);
      raw.send(`HEAD /docs/reference.js HTTP/1.1\r\nHost: a\r\nAccept-Encoding: ${accepts}\r\n\r\n`);
      const head = await raw.until("\r\n\r\n");
      assert.match(head, /^HTTP\/1.1 200 /);
      assert.equal(/content-encoding: gzip/i.test(head), accepts === "br, gzip");
      assert.match(head, /vary: accept-encoding/i);
      sizes.push(Number(/content-length: (\d+)/i.exec(head)?.[1]));
    }
    const [compressed = 0, full = 0, refused] = sizes;
    assert.ok(compressed > 0 && compressed < full / 2);
    assert.equal(full, refused);
    const file = await readFile(new URL("../../../dist/reference/reference.js.gz", import.meta.url));
    assert.equal(gunzipSync(file).length, full);
  });

  test("refuses other methods and paths", async ({ shared: { url } }) => {
    const post = await fetch(`${url}/docs`, { method: "POST" });
    assert.equal(post.status, 405);
    assert.equal(post.headers.get("allow"), "GET, HEAD");
    assert.equal((await fetch(`${url}/docs/../package.json`)).status, 404);
    assert.equal((await fetch(`${url}/docs/index.html`)).status, 404);
  });
});
