import assert from "node:assert/strict";
import fc from "fast-check";
import { test } from "vitest";
import { buildPrompt, buildReask } from "../../src/engine/prompt.ts";
import type { Message, Prompt } from "../../src/models/port/model.ts";

/** The system text and the messages as pairs of role and text. */
function rolesAndTexts({ system, messages }: Prompt): [role: string, text: string][] {
  return [["system", system], ...messages.map(({ role, text }): [string, string] => [role, text])];
}

const user = (text: string): Message => ({ role: "user", text });
const assistant = (text: string): Message => ({ role: "assistant", text });

test("puts the service's instructions before the caller's", () => {
  const [system, ...messages] = rolesAndTexts(
    buildPrompt({ system: ["Be brief.", "", "Be kind."], messages: [user("Hi")], continues: false }, "text"),
  );
  assert.equal(system?.[0], "system");
  assert.match(system?.[1] ?? "", /^You answer requests .*\n\nBe brief\.\n\nBe kind\.$/s);
  assert.deepEqual(messages, [["user", "Hi"]]);
});

test("asks for one object only in the two JSON modes", () => {
  for (const shape of ["extract", "json_schema"] as const) {
    const [[, system = ""] = []] = rolesAndTexts(
      buildPrompt({ system: [], messages: [user("a")], continues: false }, shape),
    );
    assert.match(system, /one JSON object and nothing else/);
    assert.equal(/JSON Schema/.test(system), shape === "json_schema");
  }
});

test("alternates messages from user to user without losing text", () => {
  const message = fc.record({ role: fc.constantFrom("user", "assistant"), text: fc.string() });
  fc.assert(
    fc.property(fc.array(message), fc.boolean(), (messages, continues) => {
      const prompt = rolesAndTexts(buildPrompt({ system: ["s"], messages, continues }, "text")).slice(1);
      for (const [i, [role]] of prompt.entries()) assert.equal(role, i % 2 === 0 ? "user" : "assistant");
      assert.equal(prompt.at(-1)?.[0], "user");
      assert.ok(prompt.every(([, text]) => text.trim() !== ""));
      const all = prompt.map(([, text]) => text).join("\n\n");
      let at = 0;
      for (const { text } of messages.filter((message) => message.text.trim() !== "")) {
        assert.ok(all.indexOf(text, at) >= 0);
        at = all.indexOf(text, at) + text.length;
      }
    }),
  );
});

test("joins messages of one role, and adds a user's message before and after an assistant's", () => {
  const messages = [assistant("Hello!"), user("one"), user(""), user("two"), assistant("three")];
  assert.deepEqual(rolesAndTexts(buildPrompt({ system: [], messages, continues: false }, "text")).slice(1), [
    ["user", "Begin."],
    ["assistant", "Hello!"],
    ["user", "one\n\ntwo"],
    ["assistant", "three"],
    ["user", "Go on."],
  ]);
  const [role, text] = rolesAndTexts(buildPrompt({ system: [], messages, continues: true }, "text")).at(-1) ?? [];
  assert.equal(role, "user");
  assert.match(text ?? "", /^Continue your last message exactly from where it stops/);
});

test("takes the last instruction as the request when there are no messages", () => {
  const [system, ...messages] = rolesAndTexts(
    buildPrompt({ system: ["A.", "B."], messages: [user("")], continues: false }, "text"),
  );
  assert.match(system?.[1] ?? "", /A\.$/);
  assert.deepEqual(messages, [["user", "B."]]);
});

test("sends no text of white space only, which Anthropic refuses", () => {
  const calls = [{ id: "c1", name: "f", arguments: "{}" }];
  const results = [{ id: "c1", name: "f", text: "sunny" }];
  const messages: Message[] = [
    user("Hi"),
    assistant(" \n"),
    user("The weather?"),
    { ...assistant("\n\n"), calls },
    { ...user(""), results },
  ];
  assert.deepEqual(buildPrompt({ system: [" "], messages, continues: false }, "text").messages, [
    user("Hi\n\nThe weather?"),
    { ...assistant(""), calls },
    { ...user(""), results },
  ]);
  const blank = { messages: [user(" \n")], continues: false };
  assert.deepEqual(buildPrompt({ system: ["A.", "\t"], ...blank }, "text").messages, [user("A.")]);
  assert.deepEqual(buildPrompt({ system: [], ...blank }, "text").messages, [user("Begin.")]);
  const [answer] = buildReask({ system: "", messages: [] }, "\n", ["x"], "Again.").messages;
  assert.deepEqual(answer, assistant("(empty)"));
});

test("keeps images when messages are joined and when there is no text", () => {
  const image = (byte: number) => ({ mediaType: "image/png", data: new Uint8Array([byte]) });
  const messages = [
    { ...user(""), images: [image(1)] },
    { ...user("What is it?"), images: [image(2)] },
  ];
  const joined = buildPrompt({ system: [], messages, continues: false }, "text").messages;
  assert.deepEqual(joined, [{ role: "user", text: "What is it?", images: [image(1), image(2)] }]);
  const alone = buildPrompt({ system: [], messages: messages.slice(0, 1), continues: false }, "text").messages;
  assert.deepEqual(alone, [{ role: "user", text: "", images: [image(1)] }]);
});

test("shows a model its answer and every error when it asks again", () => {
  const prompt = buildPrompt({ system: [], messages: [user("a")], continues: false }, "json_schema");
  const again = rolesAndTexts(buildReask(prompt, '{"a":1}', ["$.a: must be string", "$.b: x"], "Again."));
  assert.deepEqual(again.slice(0, -2), rolesAndTexts(prompt));
  assert.deepEqual(again.at(-2), ["assistant", '{"a":1}']);
  assert.match(again.at(-1)?.[1] ?? "", /^That is not valid:\n- \$\.a: must be string\n- \$\.b: x\nAgain\.$/);
  assert.equal(rolesAndTexts(buildReask(prompt, "", ["x"], "Again.")).at(-2)?.[1], "(empty)");
});
