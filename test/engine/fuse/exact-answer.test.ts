import assert from "node:assert/strict";
import { test } from "vitest";
import { exactAnswer } from "../../../src/engine/fuse/exact-answer.ts";

const SAME: Array<[one: string, other: string]> = [
  ["'abc'", '"abc"'],
  ["[1, 2, 'a b']", '[1,2,"a b"]'],
  ["The output is `[1, 2]`.", "[1,2]"],
  ["The function adds one.\n\nassert f(3) == [4]", "[4]"],
  ["It sorts.\n```python\n['a', 'b']\n```", "['a', 'b']"],
  ["The answer is 42.", "42"],
  ["Answer: {'x': 1}", "{'x':1}"],
  ["\nTrue\n", "True"],
  ["First the output is 3.\nFinally, the output is 5.", "5"],
];
for (const [one, other] of SAME)
  test(`joins ${JSON.stringify(one)} and ${JSON.stringify(other)}`, () => {
    assert.notEqual(exactAnswer(one), undefined);
    assert.equal(exactAnswer(one), exactAnswer(other));
  });

const DIFFERENT: Array<[one: string, other: string]> = [
  ["'Abc'", "'abc'"],
  ["a  b", "a b"],
  ["'a b'", "'ab'"],
  ["2", "2.0"],
  ["'abc'", "abc"],
  ["[1, '2']", "[1, 2]"],
  ["true", "True"],
  ["hello.", "hello"],
  ["(1,)", "(1)"],
  ["abc ", "abc"],
];
for (const [one, other] of DIFFERENT)
  test(`keeps ${JSON.stringify(one)} and ${JSON.stringify(other)} apart`, () => {
    assert.notEqual(exactAnswer(one), exactAnswer(other));
  });

test("finds no answer in prose or in an empty text", () => {
  for (const text of ["", "  \n ", "The loop runs.\nIt then stops, because the list is empty."])
    assert.equal(exactAnswer(text), undefined);
});

// Cubic time would exceed the timeout of a test.
test.each(["assert x == ", "```\n", "the output is ", "'\\", "[('", "`", "\n", " ", ".", "x\n\n\n"])(
  "reads a long text of %j in linear time",
  (part) => {
    for (const text of [part.repeat(20_000), `x${part.repeat(20_000)}x`, `\`\`\`\n${part.repeat(20_000)}\nx\n\`\`\``])
      assert.doesNotThrow(() => exactAnswer(text));
  },
);
