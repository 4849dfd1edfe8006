import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { clip, plainText } from "../../src/search/text.ts";
import { codePoint } from "../helpers/code-point.ts";

test("converts HTML to its visible text", () => {
  const cases: [string, string][] = [
    ["<strong>Apples</strong> &amp; pears", "Apples & pears"],
    ["un<b>believ</b>able", "unbelievable"],
    ["<p>One</p><p>Two</p>Three<br/>Four", "One Two Three Four"],
    ["a <SCRIPT type='x'>alert('<b>')</SCRIPT > b <style>p{}</style>c", "a b c"],
    ["before <script>never closed", "before"],
    ["a <!-- hidden <b>instructions</b> --> b", "a b"],
    ["<a href=\"javascript:x\" onclick='y'>link</a><img src=x onerror=alert(1)>", "link"],
    ["&#72;&#x69; &quot;x&quot; &#39;y&#39; &nbsp;&hellip; &Amp; &unknown; &#x110000;", "Hi \"x\" 'y' … & &unknown;"],
    // Decodes entities once, so that escaped markup stays text.
    ["&amp;lt;b&amp;gt;", "&lt;b&gt;"],
    // Text without HTML.
    ["if a < b and c > d then List<String> is <T>", "if a < b and c > d then List<String> is <T>"],
  ];
  for (const [html, text] of cases) assert.equal(plainText(html, 1_000), text);
});

test("removes line breaks and invisible characters but keeps joiners", () => {
  assert.equal(
    plainText("a\r\n\tb\u2028c\u0000\u0007d\u202ee\u200b\u{e0041}f\u00ad &#8238;&#0;&#10;g", 100),
    "a b cdef g",
  );
  assert.equal(plainText("👩‍👩‍👧 می‌خواهم", 100), "👩‍👩‍👧 می‌خواهم");
});

test("cuts a long text between words and adds an ellipsis", () => {
  assert.equal(plainText("one two three four", 14), "one two three…");
  assert.equal(clip("one two three", 13), "one two three");
  assert.equal(clip("one two three", 12), "one two");
  assert.equal(clip("abcdefghij", 5), "abcde");
  assert.equal(clip("a😀😀😀", 4), "a😀");
});

test("returns one bounded, well-formed line for any text", () => {
  const piece = fc.constantFrom(
    "<",
    ">",
    "<b>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "&lt;",
    "&#10;",
    "&amp;",
    " ",
    "\n",
    "é",
    "😀",
  );
  const text = fc.oneof(
    fc.string({ unit: codePoint, maxLength: 400 }),
    fc.array(fc.oneof(piece, fc.string({ maxLength: 3 })), { maxLength: 200 }).map((pieces) => pieces.join("")),
  );
  fc.assert(
    fc.property(text, fc.integer({ min: 2, max: 300 }), (html, max) => {
      const result = plainText(html, max);
      assert.ok(result.length <= max && result.isWellFormed());
      assert.equal(result, result.trim());
      assert.doesNotMatch(result, /[\p{Cc}]| {2}/u);
    }),
  );
});
