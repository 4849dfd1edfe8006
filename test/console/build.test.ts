import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";
import { test } from "vitest";

const DIST = resolve(import.meta.dirname, "../../console/dist");
const unbuilt = existsSync(join(DIST, "index.html"))
  ? undefined
  : "the console is not built; run npm run build:console";

/** Upper limits for the script of the owner's pages, and for what the operator's pages add to it, gzipped, in bytes. */
const MOST_SCRIPT = { owner: 190_000, operator: 20_000 };

test("the built console has a small script, none inline, and loads nothing from other hosts", async (t) => {
  t.skip(unbuilt !== undefined, unbuilt);
  for (const page of ["index.html", "operator.html"]) {
    const html = readFileSync(join(DIST, page), "utf8");
    assert.doesNotMatch(html, /<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
    for (const [, address = ""] of html.matchAll(/(?:src|href)="([^"]+)"/g)) assert.match(address, /^\/console\//);
  }
  const scripts = readdirSync(join(DIST, "assets")).filter((name) => name.endsWith(".js"));
  for (const [side, most] of Object.entries(MOST_SCRIPT)) {
    const own = scripts.filter((name) => name.startsWith("operator-") === (side === "operator"));
    const size = own.reduce((sum, name) => sum + gzipSync(readFileSync(join(DIST, "assets", name))).length, 0);
    await t.annotate(`${size} bytes of script for the ${side}, gzipped`);
    assert.ok(size > 0 && size <= most, `${side}: ${size} bytes`);
  }
});
