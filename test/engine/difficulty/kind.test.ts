import assert from "node:assert/strict";
import { test } from "vitest";
import { kindOf } from "../../../src/engine/difficulty/kind.ts";
import { read } from "../../../src/engine/difficulty/reading.ts";
import { EXAMPLES } from "./examples.ts";

const kind = (prompt: string) => kindOf(read(prompt));

for (const [language, examples] of Map.groupBy(EXAMPLES, (one) => one.language)) {
  test(`finds the kind of prompts in ${language}`, () => {
    const wrong = examples.filter((one) => kind(one.prompt) !== one.kind);
    assert.deepEqual(
      wrong.map((one) => [one.prompt, one.kind, kind(one.prompt)]),
      [],
    );
  });
}

test("finds the same kind in lower case, in upper case and in a template", () => {
  for (const one of EXAMPLES)
    for (const changed of [one.prompt.toLowerCase(), one.prompt.toUpperCase(), `Question: ${one.prompt}\nAnswer:`])
      assert.equal(kind(changed), one.kind, changed);
});

test("takes options for a closed question only if there are at least two", () => {
  assert.equal(kind("Which is largest?\nA. Mars\nB. Jupiter\nAnswer:"), "closed");
  assert.equal(kind("Thank you!\nA. Smith"), "conversation");
});

test("tells the result of a program from a program to write", () => {
  const code = "\n\ndef f(n):\n    return n * 2\n";
  assert.equal(kind(`Complete the assertion with a literal.${code}assert f(3) == ??`), "output");
  assert.equal(kind(`Write this function without a loop.${code}`), "code");
});

test("takes a story that states three numbers and asks about them for a calculation", () => {
  for (const story of [
    "Nina is 4 years older than Omar, who is 6 years older than Pia. What is the age of Nina, if Pia is 9?",
    "The museum costs $14 for adults and $9 for children, the zoo $11 and $10. What is the difference for 4?",
    "Our contractor hires 12 workers at $18 per hour for 40 hours under a new contract. Calculate what it pays them.",
    "It was 3 degrees at noon. It fell by 7 degrees by midnight and rose by 2 until six. What was it then?",
  ])
    assert.equal(kind(story), "maths", story);
  assert.equal(kind("Prove that 3 points of these 4 lie on 1 circle."), "prose");
});

test("takes a story for a calculation whose numbers are words, or that says how to round", () => {
  for (const story of [
    "Mia waters the roses twice a day and the palms every third day. Each takes half a litre. How much per week?",
    "Un panier de 6 pommes coûte 4 euros, et la poire le double. Donne le prix de 9 poires, arrondi à l'unité.",
    "Ben threw 12, 15 and 21 points. Give the mean of these.",
  ])
    assert.equal(kind(story), "maths", story);
  assert.equal(kind("How much did each of the Brontë sisters influence the others? Compare them in total."), "prose");
});

test("takes an empty prompt for conversation", () => assert.equal(kind(""), "conversation"));
