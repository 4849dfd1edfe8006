import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { test } from "vitest";

const DIST = resolve(import.meta.dirname, "../../console/dist");
const unbuilt = existsSync(join(DIST, "index.html"))
  ? undefined
  : "the console is not built; run npm run build:console";

/** Upper limit for the script, gzipped, in bytes. */
const MOST_SCRIPT = 150_000;

test("the built console has a small script, none inline, and loads nothing from other hosts", async (t) => {
  t.skip(unbuilt !== undefined, unbuilt);
  const html = readFileSync(join(DIST, "index.html"), "utf8");
  assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
  for (const [, address = ""] of html.matchAll(/(?:src|href)="([^"]+)"/g)) assert.match(address, /^\/console\//);
  const scripts = readdirSync(join(DIST, "assets")).filter((name) => name.endsWith(".js"));
  const size = scripts.reduce((sum, name) => sum + gzipSync(readFileSync(join(DIST, "assets", name))).length, 0);
  await t.annotate(`${size} bytes of script, gzipped`);
  assert.ok(size > 0 && size <= MOST_SCRIPT, `${size} bytes`);
});
