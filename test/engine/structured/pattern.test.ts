import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { z } from "zod";
import { Exhausted, LooseEffort } from "../../../src/engine/structured/effort.ts";
import { MAX_PARTS, Patterns } from "../../../src/engine/structured/patterns.ts";

/** Whether a pattern matches; undefined if it is refused. */
function matches(source: string, text: string): boolean | undefined {
  return new Patterns().read(source)?.test(text, new LooseEffort(100_000));
}

/**
 * What JavaScript says, with the flag `u` if the pattern can be read with it. V8 also begins between the two units of a
 * code point then, unlike ECMAScript (`RegExpBuiltinExec`), so each place is tried by itself.
 */
function expected(source: string, text: string): boolean {
  let expression: RegExp;
  try {
    expression = new RegExp(source, "uy");
  } catch {
    return new RegExp(source).test(text);
  }
  const places = [0];
  for (const character of text) places.push(Number(places.at(-1)) + character.length);
  return places.some((place) => {
    expression.lastIndex = place;
    return expression.test(text);
  });
}

const ATOMS = [
  ...["a", "b", "é", "😀", ".", "\\d", "\\D", "\\w", "\\W", "\\s", "\\S", "[ab]", "[^ab]", "[a-c1]", "[^]", "[]"],
  ...["\\p{L}", "\\P{Lu}", "[\\p{L}\\d]", "[^\\p{L}😀]", "\\u{1F600}", "\\ud83d", "[\\w-]", "\\n"],
];
const PLACES = ["^", "$", "\\b", "\\B"];
const TIMES = ["?", "*", "+", "*?", "{0}", "{2}", "{1,2}", "{1,}?", "{0,3}"];
const LOOKS = ["(?=", "(?!", "(?<=", "(?<!"];

const { pattern: patterns } = fc.letrec<{ pattern: string; alternative: string; element: string }>((tie) => ({
  pattern: fc.array(tie("alternative"), { minLength: 1, maxLength: 3 }).map((all) => all.join("|")),
  alternative: fc.array(tie("element"), { maxLength: 3 }).map((all) => all.join("")),
  element: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(...ATOMS),
    fc.constantFrom(...PLACES),
    fc.tuple(fc.constantFrom(...ATOMS), fc.constantFrom(...TIMES)).map((parts) => parts.join("")),
    fc
      .tuple(fc.constantFrom("(", "(?:", "(?<n>"), tie("pattern"), fc.constantFrom("", ...TIMES))
      .map(([open, inner, times]) => `${open}${inner})${times}`),
    fc.tuple(fc.constantFrom(...LOOKS), tie("pattern")).map(([open, inner]) => `${open}${inner})`),
  ),
}));
const texts = fc.array(fc.constantFrom("a", "b", "c", "1", "_", " ", "\n", "é", "Z", "😀", "\ud83d", "\ude00"), {
  maxLength: 8,
});

describe("a pattern", () => {
  test("matches as in JavaScript", () => {
    fc.assert(
      fc.property(patterns, texts, (source, characters) => {
        // A name may stand twice only in different alternatives.
        const named = source.replaceAll("(?<n>", "(");
        const text = characters.join("");
        const own = matches(named, text);
        if (own !== undefined) assert.equal(own, expected(named, text));
      }),
      { numRuns: 5_000 },
    );
  });

  test.for([
    // Escapes that only patterns without the flag `u` have.
    ["\\d\\-\\d", "1-2", true],
    ["\\p{L}", "é", true],
    ["^\\p{L}\\-$", "p{L}-", true],
    ["a{,2}", "a{,2}", true],
    ["^.$", "😀", true],
    ["^.\\-?$", "😀", false],
    ["(?<=(?<!a)b)c", "bc", true],
    ["(?<=(?<!a)b)c", "abc", false],
    ["^(?!\\.)(?!.*\\.\\.)[a-z.]+$", "a.b", true],
    ["^(?!\\.)(?!.*\\.\\.)[a-z.]+$", "a..b", false],
    ["^(?:a?)*$", "aaab", false],
    ["^(?:a?){1000000}b$", "aab", undefined],
    ["^(?:){1000000}b$", "b", true],
    ["^(a)\\1$", "aa", undefined],
    ["(?i:a)", "A", undefined],
    ["(", "", undefined],
    ["\\p{Nothing}", "", false],
    ["\\p{sc=Seal}", "a", false],
    ["\\P{sc=Seal}", "a", true],
    [`a{${MAX_PARTS}}`, "", undefined],
  ] as const)("%s of %s: %s", ([source, text, result]) => assert.equal(matches(source, text), result));

  test("of zod's formats matches as in JavaScript", () => {
    const { date, datetime, duration } = z.iso;
    const types = [date(), datetime({ offset: true, local: true }), duration(), z.email(), z.uuid(), z.cidrv6()];
    const samples = [
      ...["2026-02-28", "2026-02-30", "2026-02-28T10:00:00+02:00", "P3DT4H", "P", "ann@example.com", "a..b@c.de"],
      ...["123e4567-e89b-42d3-a456-426614174000", "2001:db8::/32", "::1/129", ""],
    ];
    for (const type of types) {
      const source = String(z.toJSONSchema(type).pattern);
      for (const text of samples) assert.equal(matches(source, text), expected(source, text), `${source} of ${text}`);
    }
  });
});

/** Processor time of a function, in milliseconds. */
function timeOf(run: () => void): number {
  const before = process.threadCpuUsage();
  run();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

describe("a hostile pattern", () => {
  const repeated = (part: string) => part.repeat(512 / part.length);
  test.for([
    ...["\\p{L}\\b", "\\p{L}", "\\W?", "\\ba?", "(?=a?)", "a{0,3}", "(?:a|b)", "(?:a+)+", "(?<=a*)", "(?!\\p{L}*)a*"],
    ...["(a|a?)+", "[^\\p{L}]", "\\P{Cn}\\b"],
  ])("of many %s takes at most the effort", (part) => {
    const ms = timeOf(() => {
      const pattern = new Patterns().read(repeated(part));
      for (const text of ["中中", "a".repeat(5_000), `${"a".repeat(40)}!`, "é".repeat(2_000)])
        try {
          pattern?.test(text, new LooseEffort(100_000));
        } catch (error) {
          assert.ok(error instanceof Exhausted);
        }
    });
    // Four efforts, on a slow machine. One such pattern took V8 28 s.
    assert.ok(ms < 1_000, `${ms} ms`);
  });

  test("of many classes of Unicode takes at most the effort", () => {
    const scripts =
      "Arab Armn Beng Cans Cher Cyrl Deva Ethi Geor Grek Gujr Guru Hang Hani Hebr Hira Kana Khmr Knda Laoo Latn Mlym " +
      "Mong Mymr Ogam Orya Sinh Syrc Taml Telu Thaa Thai Tibt Tfng Talu Tale Goth Copt Cprt Dsrt Buhd";
    const classes = scripts.split(" ").map((script) => `\\p{sc=${script}}`);
    const pattern = new Patterns().read(`[${classes.join("")}]`);
    assert.throws(() => pattern?.test("!", new LooseEffort(100_000)), Exhausted);
    assert.equal(pattern?.test("!", new LooseEffort(100_000)), false);
    assert.equal(pattern?.test("Ж", new LooseEffort(100_000)), true);
  });

  test.for([
    ["the most parts", (i: number) => `(?:a{99}){199}${i}`],
    ["too many parts", (i: number) => `(?:a{99}){209}${i}`],
    ["a reference", (i: number) => `(?:a{99}){199}(a)\\1${i}`],
    ["empty groups", (i: number) => `(?:${"()".repeat(240)}a){9999}${i}`],
    ["no end", (i: number) => "(".repeat(500) + i],
  ] as const)("is read in bounded time: one of hundreds with %s", ([, patternOf]) => {
    const ms = timeOf(() => {
      const patterns = new Patterns();
      for (let i = 0; i < 700; i++) patterns.read(patternOf(i));
    });
    // 10 to 40 ms here. All of them took 0.4 s and more.
    assert.ok(ms < 200, `${ms} ms`);
  });

  test("is matched in a time that grows with the text", () => {
    for (const [source, text, result] of [
      ["^(?:(?:a|b)*c?)*$", "a".repeat(20_000), true],
      ["^(a+)+$", `${"a".repeat(20_000)}!`, false],
      ["^(?=.*a)(?!.*b)[a-z]+$", "a".repeat(20_000), true],
      ["(?=.*!)[a-z]+!b", `${"a".repeat(200)}!`, false],
    ] as const)
      assert.equal(matches(source, text), result, source);
  });
});
