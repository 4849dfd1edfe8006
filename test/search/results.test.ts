import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { type Found, tidy } from "../../src/search/results.ts";
import { codePoint } from "../helpers/code-point.ts";

const found = (url: string, text = url, rest: Partial<Found> = {}): Found => ({
  title: "T",
  url,
  text,
  published: "",
  ...rest,
});
const urls = (list: Found[], count = 20) => tidy(list, count).map(({ url }) => url);

test("merges addresses of one page into the first result", () => {
  const same = [
    "https://Example.com/a?b=1&c=2",
    "https://example.com/a/?b=1&c=2",
    "http://example.com/a?b=1&c=2",
    "https://www.example.com/a?c=2&b=1#part",
    "https://example.com:443/a?utm_source=x&b=1&c=2&UTM_Medium=y&gclid=1&fbclid=2",
  ];
  assert.deepEqual(urls(same.map((url, i) => found(url, `text ${i}`))), ["https://example.com/a?b=1&c=2"]);
  const other = [
    "https://example.com/a",
    "https://example.com/A",
    "https://example.com:8443/a",
    "https://example.com/a?b=2",
  ];
  assert.deepEqual(urls(other.map((url, i) => found(url, `text ${i}`))), other);
});

test("removes tracking parameters from an address and keeps the others as written", () => {
  assert.deepEqual(urls([found("https://a.example/?utm_campaign=x&q=1#s")]), ["https://a.example/?q=1#s"]);
  assert.deepEqual(urls([found("https://a.example/?q=a%20b~&x")]), ["https://a.example/?q=a%20b~&x"]);
});

test("merges copies of a text but not texts that share a subject", () => {
  const text =
    "The probe reached Mars on Tuesday after a journey of seven months, the agency said at a press conference.";
  const copies = [text, text.toUpperCase(), `${text} (Reuters)`, `Updated: ${text}`];
  assert.deepEqual(urls(copies.map((one, i) => found(`https://${i}.example/`, one))), ["https://0.example/"]);
  const others = [
    text,
    "The probe left Earth on Monday for Mars, where it will arrive after seven months.",
    "Mars is a planet.",
  ];
  assert.equal(urls(others.map((one, i) => found(`https://${i}.example/`, one))).length, 3);
  const chinese = [
    "探测器周二抵达火星，机构在新闻发布会上说。",
    "探测器周二抵达火星，机构在新闻发布会上说！",
    "火星是一颗行星，没有人住在那里。",
  ];
  assert.deepEqual(urls(chinese.map((one, i) => found(`https://${i}.example/`, one))), [
    "https://0.example/",
    "https://2.example/",
  ]);
});

test("keeps a result that has only a title and drops one without title and text", () => {
  assert.deepEqual(tidy([found("https://a.example/", ""), found("https://b.example/", "", { title: " <b></b>" })], 5), [
    { title: "T", url: "https://a.example/", text: "" },
  ]);
});

test("reduces dates to days and drops invalid ones", () => {
  const day = (published: string) => tidy([found("https://a.example/", "x", { published })], 1)[0]?.published;
  for (const text of [
    "2026-03-01",
    "2026-03-01T23:59:59",
    "2026-03-01 00:00:00+09:00",
    "Sun, 01 Mar 2026 10:00:00 GMT",
  ]) {
    assert.equal(day(text), "2026-03-01", text);
  }
  for (const text of ["", "yesterday", "2026-13-45", "1", "Mon, 99 Foo 2026 10:00:00 GMT", "2026-03-01x", "GMT"]) {
    assert.equal(day(text), undefined, text);
  }
});

test("returns bounded, plain and distinct results for any input", () => {
  const text = fc.oneof(
    fc.string({ unit: codePoint, maxLength: 3_000 }),
    fc.string({ maxLength: 300 }),
    fc.constantFrom("<script>", "&#x0;", "&#xd800;", "<b", "\u202e", "x".repeat(5_000)),
  );
  const url = fc.oneof(fc.webUrl({ withQueryParameters: true, withFragments: true }), text);
  const one = fc.record({ title: text, url, text, published: text });
  fc.assert(
    fc.property(fc.array(one, { maxLength: 30 }), fc.integer({ min: 1, max: 20 }), (list, count) => {
      const results = tidy(list, count);
      assert.ok(results.length <= count);
      assert.equal(new Set(results.map((result) => result.url)).size, results.length);
      for (const result of results) {
        assert.match(result.url, /^https?:\/\//);
        assert.ok(result.url.length <= 2_000 && result.title.length <= 200 && result.text.length <= 1_500);
        assert.notEqual(result.title, "");
        for (const part of [result.title, result.url, result.text]) {
          assert.ok(part.isWellFormed());
          assert.doesNotMatch(part, /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
        }
      }
    }),
  );
});
