import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { htmlToText } from "../../../src/engine/attachments/html.ts";

test("turns blocks into paragraphs, headings, items and rows", () => {
  const page = `<!DOCTYPE html><html><head><title>Title &amp; more</title><style>p{}</style></head><body>
    <h2>Head</h2><p>One
      two<b>three</b> four<br>five.</p>
    <ul><li><p>first</p></li><li>second</li></ul>
    <table><tr><th>x</th><th><p>y</p><p>z</p></th></tr><tr><td>1</td><td></td><td>3</td></tr></table>
    <pre>a\n  b</pre><!-- <p>no</p> --><script>if (a < b) "<p>no</p>"</script><p>end</p></body></html>`;
  assert.equal(
    htmlToText(page),
    "Title & more\n\n## Head\n\nOne twothree four\nfive.\n\n- first\n\n- second\n\nx | y z\n1 | | 3\n\na\n  b\n\nend",
  );
});

test("decodes character references once, replaces invalid ones and removes soft hyphens", () => {
  assert.equal(
    htmlToText(
      "&lt;b&gt; &#228;&#xE4;&auml; &#x1F600;&otimes; &nosuch; &amp;lt; a&b a&nbsp;&nbsp;b co&shy;op &#0;&#xD800;.",
    ),
    "<b> äää 😀⊗ &nosuch; &lt; a&b a b coop \ufffd\ufffd.",
  );
});

test("leaves out elements that a browser does not show, up to their end tags", () => {
  assert.equal(
    htmlToText(
      "a<SCRIPT>1 < 2; '</p>'</SCRIPT><style/>p{}</style>" +
        "<template><p>b<template>c</template>d</p></template><iframe><p>e</iframe> f<!-- > g -->",
    ),
    "a f",
  );
  assert.equal(htmlToText("a<script>b"), "a");
});

test("ends cells and rows without closing tags", () => {
  assert.equal(htmlToText("<table><tr><td>a<td>b<tr><td>c</table><p>d<p>e"), "a | b\nc\n\nd\n\ne");
});

test("keeps empty cells, so that the others stay in their columns", () => {
  const row = (...cells: string[]) => `<tr>${cells.map((cell) => `<td>${cell}</td>`).join(" ")}</tr>`;
  const table = row("", "x", "y") + row("a", "", "1") + row("", "", "") + row("b", "2", "");
  assert.equal(htmlToText(`t<table>${table}</table>`), "t\n\n| x | y\na | | 1\nb | 2");
});

test("reads 300,000 unclosed elements in linear time", () => {
  assert.equal(htmlToText(`${"<b><form>".repeat(300_000)}a`), "a");
  assert.equal(htmlToText(`${"<td>".repeat(300_000)}a`).length, 2 * 299_999 + 1);
});

test("keeps the text of malformed pages", () => {
  assert.equal(htmlToText("a < b, c > d, x<1"), "a < b, c > d, x<1");
  assert.equal(htmlToText('<p title="a>b">text</p>'), "text");
  // As in a browser, an unterminated tag contains everything that follows.
  assert.equal(htmlToText('before<p title="open>text</p>'), "before");
  assert.equal(htmlToText("text <a href"), "text");
  assert.equal(htmlToText("<td>cell</p></li>"), "cell");
  assert.equal(htmlToText(""), "");
});

test("joins a long text that the parser delivers in pieces", () => {
  const words = "word &amp; ".repeat(30_000);
  assert.equal(htmlToText(`<p>${words}</p>`), "word & ".repeat(30_000).trim());
});

test("changes only the white space of a text without markup", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), (text) => {
      const unmarked = text.replace(/[<&]/g, "");
      assert.equal(htmlToText(unmarked), unmarked.replace(/\s+/g, " ").trim());
    }),
  );
});
