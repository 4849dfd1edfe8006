import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { highlight } from "../../console/src/playground/highlight.ts";

/** Text of HTML that has no elements but spans. */
function textOf(html: string): string {
  return html.replace(/<\/?span[^>]*>/g, "").replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
}

const CODE = fc.string({ unit: fc.constantFrom("$", ..."ab1\"'`\\/*#\n <>&{}_.;"), maxLength: 200 });

test("keeps every character of a program, and escapes it", () => {
  fc.assert(
    fc.property(CODE, (code) => {
      const html = highlight(code);
      assert.equal(textOf(html), code);
      assert.doesNotMatch(html.replace(/<\/?span(?: class="code-\w+")?>/g, ""), /[<>"]/);
    }),
  );
});

test("marks words, strings, numbers and comments, and no address as a comment", () => {
  const html = highlight('const n = 42; // the answer\ncurl http://a.b "$KEY"\n# a note');
  for (const [kind, text] of [
    ["word", "const"],
    ["number", "42"],
    ["note", "// the answer"],
    ["text", "&#34;$KEY&#34;"],
    ["note", "# a note"],
  ])
    assert.ok(html.includes(`<span class="code-${kind}">${text}</span>`), `${kind} ${text}: ${html}`);
  assert.ok(html.includes("http://a.b"));
  assert.equal(highlight("http://127.0.0.1:8080/v1"), "http://127.0.0.1:8080/v1");
});
