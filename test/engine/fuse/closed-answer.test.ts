import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { closedAnswer } from "../../../src/engine/fuse/closed-answer.ts";
import { codePoint } from "../../helpers/code-point.ts";

const FORMS: Record<string, Record<string, string[]>> = {
  "option letters": {
    b: [
      "B",
      "(b)",
      "B.",
      "**B**",
      "B) Paris",
      "(B) Paris",
      "B. Paris",
      "Option B",
      "B, because it is cheaper.",
      "(B) is correct.",
      "B is the right answer",
      "[B]",
      "Ｂ",
      "The answer is B.",
      "The answer is (B) because the others fail.",
      "The correct option is **B**.",
      "**Answer:** B",
      "**Answer: (B)**",
      "Answer:\n\nB",
      "$\\boxed{B}$",
      "\\boxed{\\text{B}}",
      "\\(B\\)",
      "First I rule out A and C.\nThen D.\n\n**B**",
      "Let us see.\nA is wrong. The answer is A? No.\nThe answer is therefore B.",
      '{"reasoning": "long", "answer": "B"}',
      "```\nB\n```",
    ],
    a: ["A", "(A)", "the answer is a"],
    i: ["I", "The answer is I."],
    "a,c": ["A, C", "A and C", "(A), (C)", "A & C", "A, and C"],
  },
  numbers: {
    // Zeros in front of a whole number belong to a code; those of other numbers do not count.
    "01234": ["01234", "01234.", "Answer: 01234"],
    "9.5": ["9.5", "09.5", "09.50", "9.50"],
    "18": [
      "18",
      "18.0",
      "$18",
      "$18.00",
      "18 dollars",
      "1.8e1",
      "1.8 × 10^1",
      "$18 per day",
      "18 km/h",
      "18 m^2",
      "18 square meters",
      "18%",
      "18 percent",
      "18°",
      "18^\\circ",
      "x = 18",
      "Nine eggs are left: 16 - 7 = 9.\nTherefore, she makes $18 every day.",
      "16 - 7 = 9 eggs are left.\nThen she makes 9 * 2 = $18 with these.",
      "about 18",
      "144 / 8 = 18 inches",
      "$3 * 6 = $18",
      "#### 18",
      "She sells nine eggs.\n#### 18\n",
      "The answer is $\\$18$.",
      "\\boxed{18\\text{ dollars}}",
      "So 9 * 2 = **18**.\nThe final answer is: **18 dollars**",
      "Final Answer: The final answer is $\\boxed{18}$. I hope it is correct.",
      "\\boxed{\\frac{36}{2}}",
      "It is a sum.\n\n18",
      "The answer is 18. That was easy.",
      "eighteen is the answer: 18",
    ],
    "-5": ["-5", "−5", "-$5", "$-5", "-5.00"],
    "1234.5": ["1,234.50", "$1,234.5", "1 234.5", "1{,}234.5", "1\\,234.5"],
    "0.5": ["1/2", "½", ".5", "0.50", "\\frac{1}{2}", "$\\dfrac12$", "50e-2"],
    "3.5": ["3 1/2", "3½", "7/2", "3\\frac{1}{2}"],
    "1/3": ["1/3", "2/6", "\\frac{1}{3}"],
    "1500000": ["1.5 million", "1,500,000", "1.5e+06"],
    "12345678901234567890": ["12345678901234567890", "12,345,678,901,234,567,890.0"],
  },
  truth: { yes: ["Yes", "yes.", "Yes, because it is.", "The answer is yes"], true: ["True", "TRUE.", "**True**"] },
  words: {
    paris: ["Paris", "paris.", "PARIS", "ｐａris", "**Paris**", "The answer is Paris.", "\\text{Paris}", '"Paris"'],
    "eiffel tower": ["The Eiffel Tower", "Eiffel tower", "the  eiffel-tower"],
    "mr smith": ["Mr. Smith", "The answer is Mr. Smith."],
  },
  expressions: { "x^2+1": ["x^2+1", "$x^2 + 1$", "x^{2} + 1", "x² + 1"] },
};

for (const [what, forms] of Object.entries(FORMS)) {
  test(`reads ${what}`, () => {
    for (const [form, texts] of Object.entries(forms)) {
      for (const text of texts) assert.equal(closedAnswer(text), form, JSON.stringify(text));
    }
  });
}

test("gives different forms for different answers", () => {
  const sets = [
    ["C", "C++", "C#"],
    ["3x", "3y", "3"],
    ["2 am", "2 pm"],
    ["(1, 2)", "(2, 1)", "12", "[1, 2]"],
    ["J. K. Rowling", "J. R. R. Tolkien"],
    ["-5", "5"],
    ["5 or 6", "5"],
    ["No one", "No"],
    ["10²", "102"],
    ["3π", "3"],
    ["Statement 1 is correct and 2 is correct", "Statement 1 is correct and 2 is not", "Statement 1 is correct"],
    ["x >= 5", "x <= 5", "5"],
    ["x = 2 or x = 3", "3"],
    ["\\sqrt{2}", "2"],
    ["1.5 and 2.5", "15 and 25"],
    ["12345678901234567890", "12345678901234567891"],
    ["01234", "1234", "001234", "-01234"],
    ["The area code is 030.\nAnswer: 030", "30"],
  ];
  for (const texts of sets) assert.equal(new Set(texts.map(closedAnswer)).size, texts.length, texts.join(" | "));
});

test("finds no answer in unmarked prose, a refusal or an empty text", () => {
  const prose =
    "There are many things to say about it.\nOne of them is long enough to be prose, and no letter stands alone.";
  for (const text of [
    "",
    "  \n",
    "***",
    "I don't know.",
    "I'm sorry, but I cannot help with that.",
    prose,
    `Answer: ${"very ".repeat(80)}long`,
  ]) {
    assert.equal(closedAnswer(text), undefined, JSON.stringify(text));
  }
});

const PIECES = [
  "answer",
  "Answer: ",
  "the answer is ",
  "\\boxed{",
  "}",
  "#### ",
  "**",
  "$",
  "\\frac{",
  "\\text{",
  "(b)",
  "B",
  ". ",
  "18",
  "1,234",
  "½",
  "e5",
  "/",
  "-",
  "=",
  "\n",
  " ",
  "{",
  "yes",
  "No, ",
  "the",
  "a",
  "million",
  "π",
  "²",
  "％",
  "\\",
  "`",
  '"',
];
const text = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 24 }).map((all) => all.join("")),
  fc.string({ unit: codePoint }),
);

test("maps every form to itself", () => {
  fc.assert(
    fc.property(text, (any) => {
      const form = closedAnswer(any);
      if (form !== undefined) assert.equal(closedAnswer(form), form);
    }),
    { numRuns: 2_000 },
  );
});

test("reads all digits of an integer in every notation", () => {
  fc.assert(
    fc.property(fc.bigInt(-(10n ** 25n), 10n ** 25n), (value) => {
      const grouped = value.toString().replace(/(\d)(?=(\d{3})+$)/g, "$1,");
      for (const notation of [
        `${value}`,
        grouped,
        `${value}.00`,
        `Answer: ${grouped}.`,
        `\\boxed{${value}}`,
        `${value} apples`,
      ]) {
        assert.equal(closedAnswer(notation), `${value}`);
      }
    }),
  );
});

test("reads 200,000 characters in linear time", () => {
  const hard = [
    "a",
    " ",
    "*",
    "{",
    "1",
    "\n",
    "#",
    "$",
    "answer ",
    "answer is ",
    "answer to ",
    "\\boxed{",
    "\\boxed{}",
    "#### x\n",
    "1,111",
    "¹",
    "```",
    "\\frac{",
  ];
  for (const piece of hard) closedAnswer(piece.repeat(Math.ceil(200_000 / piece.length)));
  assert.equal(closedAnswer(`${"Step by step. ".repeat(14_000)}\nThe answer is 42.`), "42");
});
