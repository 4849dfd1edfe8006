import assert from "node:assert/strict";
import type { LanguageModelV4Prompt } from "@ai-sdk/provider";
import fc from "fast-check";
import { test } from "vitest";
import { buildPrompt, buildReask, type Turn } from "../../src/engine/prompt.ts";

/** Turns as pairs of role and text; the system text as one. */
function plain(prompt: LanguageModelV4Prompt): [role: string, text: string][] {
  return prompt.map(({ role, content }) => [
    role,
    typeof content === "string" ? content : content.map((part) => (part.type === "text" ? part.text : "?")).join(""),
  ]);
}

const user = (text: string): Turn => ({ role: "user", text });
const assistant = (text: string): Turn => ({ role: "assistant", text });

test("instructions of the service stand before the caller's, and all of them before the turns", () => {
  const [system, ...turns] = plain(
    buildPrompt({ system: ["Be brief.", "", "Be kind."], turns: [user("Hi")], continues: false }, "text"),
  );
  assert.equal(system?.[0], "system");
  assert.match(system?.[1] ?? "", /^You answer requests .*\n\nBe brief\.\n\nBe kind\.$/s);
  assert.deepEqual(turns, [["user", "Hi"]]);
});

test("the two JSON modes ask for one object and nothing else", () => {
  for (const shape of ["extract", "json_schema"] as const) {
    const [[, system = ""] = []] = plain(buildPrompt({ system: [], turns: [user("a")], continues: false }, shape));
    assert.match(system, /one JSON object and nothing else/);
    assert.equal(/JSON Schema/.test(system), shape === "json_schema");
  }
});

test("turns alternate, from a user's to a user's, and nothing of them is lost", () => {
  const turn = fc.record({ role: fc.constantFrom("user", "assistant"), text: fc.string() });
  fc.assert(
    fc.property(fc.array(turn), fc.boolean(), (turns, continues) => {
      const prompt = plain(buildPrompt({ system: ["s"], turns, continues }, "text")).slice(1);
      for (const [i, [role]] of prompt.entries()) assert.equal(role, i % 2 === 0 ? "user" : "assistant");
      assert.equal(prompt.at(-1)?.[0], "user");
      assert.ok(prompt.every(([, text]) => text !== "") || turns.every(({ text }) => text === ""));
      const all = prompt.map(([, text]) => text).join("\n\n");
      let at = 0;
      for (const { text } of turns) {
        assert.ok(all.indexOf(text, at) >= 0);
        at = all.indexOf(text, at) + text.length;
      }
    }),
  );
});

test("turns of one side are joined; a conversation that an assistant opens or closes gets a user's turn there", () => {
  const turns = [assistant("Hello!"), user("one"), user(""), user("two"), assistant("three")];
  assert.deepEqual(plain(buildPrompt({ system: [], turns, continues: false }, "text")).slice(1), [
    ["user", "Begin."],
    ["assistant", "Hello!"],
    ["user", "one\n\ntwo"],
    ["assistant", "three"],
    ["user", "Go on."],
  ]);
  const [role, text] = plain(buildPrompt({ system: [], turns, continues: true }, "text")).at(-1) ?? [];
  assert.equal(role, "user");
  assert.match(text ?? "", /^Continue your last message exactly from where it stops/);
});

test("of a conversation that is all instructions the last one is the request", () => {
  const [system, ...turns] = plain(buildPrompt({ system: ["A.", "B."], turns: [user("")], continues: false }, "text"));
  assert.match(system?.[1] ?? "", /A\.$/);
  assert.deepEqual(turns, [["user", "B."]]);
});

test("images stand before the text of their turn, also where turns are joined or there is no text", () => {
  const image = (byte: number) => ({ mediaType: "image/png", data: new Uint8Array([byte]) });
  const turns = [
    { ...user(""), images: [image(1)] },
    { ...user("What is it?"), images: [image(2)] },
  ];
  const content = buildPrompt({ system: [], turns, continues: false }, "text").at(-1)?.content;
  const file = (byte: number) => ({
    type: "file",
    mediaType: "image/png",
    data: { type: "data", data: new Uint8Array([byte]) },
  });
  assert.deepEqual(content, [file(1), file(2), { type: "text", text: "What is it?" }]);
  const alone = buildPrompt({ system: [], turns: turns.slice(0, 1), continues: false }, "text").at(-1)?.content;
  assert.deepEqual(alone, [file(1)]);
});

test("asked again, a model sees its answer and every error", () => {
  const prompt = buildPrompt({ system: [], turns: [user("a")], continues: false }, "json_schema");
  const again = plain(buildReask(prompt, '{"a":1}', ["$.a: must be string", "$.b: x"]));
  assert.deepEqual(again.slice(0, -2), plain(prompt));
  assert.deepEqual(again.at(-2), ["assistant", '{"a":1}']);
  assert.match(again.at(-1)?.[1] ?? "", /^That is not valid:\n- \$\.a: must be string\n- \$\.b: x\n/);
  assert.equal(plain(buildReask(prompt, "", ["x"])).at(-2)?.[1], "(empty)");
});
