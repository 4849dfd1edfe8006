import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { JsonText, member, parseJson, stringifyJson, toValue } from "../../src/contract/json.ts";
import { codePoint } from "../helpers/code-point.ts";

interface Sample {
  text: string;
  value: unknown;
}

/** Builds an object from members. The last member of a name wins. */
function record(members: readonly (readonly [string, unknown])[]): object {
  const object = {};
  for (const [key, value] of members)
    Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true });
  return object;
}

const space = fc.constantFrom("", "", " ", "\n", "\t\r ");
// Samples carry their expected value because V8's JSON.parse misreads some escaped names (nodejs/node#63785).
const names: [string, string][] = [
  ['"a"', "a"],
  ['"\\u0061"', "a"],
  ['"b"', "b"],
  ['""', ""],
  ['"__proto__"', "__proto__"],
  ['"__pr\\u006fto__"', "__proto__"],
  ['"10"', "10"],
  ['"2"', "2"],
  ['"\\\\"', "\\"],
  ['"\\""', '"'],
  ['"\\n"', "\n"],
  ['"é"', "é"],
];
const scalar = fc
  .oneof(
    fc.constantFrom("1.0", "-0", "1e400", "123456789012345678901234567890", "true", "false", "null", '"a\\u0041\\""'),
    fc.string({ unit: codePoint }).map((text) => JSON.stringify(text)),
  )
  .map((text): Sample => ({ text, value: JSON.parse(text) }));
/** JSON with white space, escapes and repeated names. */
const { json } = fc.letrec<{ json: Sample }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 5 },
    scalar,
    fc.tuple(space, fc.array(fc.tuple(space, tie("json"), space))).map(([inside, items]): Sample => {
      const texts = items.map(([before, item, after]) => before + item.text + after);
      return { text: `[${texts.join(",") || inside}]`, value: items.map(([, item]) => item.value) };
    }),
    fc.array(fc.tuple(space, fc.constantFrom(...names), space, tie("json"))).map((members): Sample => {
      const texts = members.map(
        ([before, [name], after, item]) => `${before}${name}${after}:${after}${item.text}${before}`,
      );
      return { text: `{${texts.join(",")}}`, value: record(members.map(([, [, name], , item]) => [name, item.value])) };
    }),
  ),
}));

function accepts(parse: (text: string) => unknown, text: string): boolean {
  try {
    parse(text);
    return true;
  } catch (error) {
    assert.ok(error instanceof SyntaxError);
    return false;
  }
}

describe("parseJson and stringifyJson", () => {
  it("preserve the value", () => {
    fc.assert(
      fc.property(json, ({ text, value }) => {
        const node = parseJson(text);
        assert.deepEqual(toValue(node), value);
        assert.deepEqual(parseJson(stringifyJson(node)), node);
      }),
    );
  });

  it("accept exactly what JSON.parse accepts", () => {
    const patch = fc.constantFrom("", ",", '"', "}", "]", "\\", "NaN", "0", "\u00a0", "\n");
    const broken = fc.tuple(json, fc.nat(), patch).map(([{ text }, at, insert]) => {
      const place = at % (text.length + 1);
      return text.slice(0, place) + insert + text.slice(place + 1);
    });
    fc.assert(fc.property(broken, (text) => assert.equal(accepts(parseJson, text), accepts(JSON.parse, text))));
  });

  it("preserve literals and the order of names that look like integers", () => {
    const text = '{"b":1.0,"10":123456789012345678901234567890,"2":"a\\u0041","__proto__":{"x":[-0,1e400]}}';
    assert.equal(stringifyJson(parseJson(text)), text);
    assert.equal(stringifyJson(parseJson(`\n${text.replaceAll(",", " , ").replaceAll(":", " : ")} `)), text);
  });

  it("use the last value of a repeated name, at the position of the first", () => {
    assert.equal(stringifyJson(parseJson('{"a":1,"b":2,"\\u0061":3}')), '{"a":3,"b":2}');
  });

  it("reject text that is nested too deeply, without a stack overflow and without quoting the text", () => {
    assert.equal(parseJson(`${"[".repeat(512)}${"]".repeat(512)}`).kind, "array");
    assert.throws(() => parseJson(`${"[".repeat(513)}${"]".repeat(513)}`), SyntaxError);
    assert.throws(() => parseJson('{"a":'.repeat(200_000)), SyntaxError);
    assert.throws(() => parseJson(`${"[".repeat(200_000)}${"]".repeat(200_000)}`), SyntaxError);
    assert.throws(() => parseJson("{secret}"), { name: "SyntaxError", message: "The text is not valid JSON." });
  });
});

describe("member", () => {
  it("returns the value of a member, including __proto__", () => {
    assert.deepEqual(member(parseJson('{"a":1,"__proto__":2}'), "__proto__"), { kind: "scalar", text: "2" });
    assert.equal(member(parseJson('{"a":1}'), "toString"), undefined);
    assert.equal(member(parseJson("[1]"), "0"), undefined);
  });
});

describe("JsonText", () => {
  const part = (text: string, path: (string | number)[]) => new JsonText(text).at(path);

  it("returns the text of a part as written", () => {
    const step = fc.oneof(fc.constantFrom(...names.map(([, name]) => name)), fc.nat({ max: 3 }));
    fc.assert(
      fc.property(json, fc.array(fc.array(step, { maxLength: 3 }), { maxLength: 4 }), ({ text, value }, paths) => {
        const source = new JsonText(text);
        for (const path of paths) {
          let expected = value;
          for (const step of path) {
            const isFitting = typeof expected === "object" && Array.isArray(expected) === (typeof step === "number");
            expected = isFitting ? Object.getOwnPropertyDescriptor(expected ?? {}, step)?.value : undefined;
          }
          const found = source.at(path);
          assert.deepEqual(found === undefined ? undefined : toValue(parseJson(found)), expected);
          if (found !== undefined) assert.ok(text.includes(found) && found === found.trim());
        }
      }),
      { numRuns: 500 },
    );
  });

  it("preserves spelling and the order of names", () => {
    const body = '{"response_format" : {"schema":{ "b":1.0, "10":{} , "2":[] } , "type":"json_schema"}}';
    assert.equal(part(body, ["response_format", "schema"]), '{ "b":1.0, "10":{} , "2":[] }');
    assert.equal(part(body, ["response_format", "type"]), '"json_schema"');
    assert.equal(part(body, ["response_format", "type", "x"]), undefined);
    assert.equal(part(body, ["schema"]), undefined);
  });

  it("enters lists by number", () => {
    const body = '{"tools":[ {"parameters": {"a":1e2} }, [ ] , "x,]"]}';
    assert.equal(part(body, ["tools", 0, "parameters"]), '{"a":1e2}');
    assert.equal(part(body, ["tools", 1]), "[ ]");
    assert.equal(part(body, ["tools", 2]), '"x,]"');
    for (const path of [["tools", 3], ["tools", 1, 0], ["tools", "0"], [0]]) assert.equal(part(body, path), undefined);
  });

  it("uses the last value of a repeated name at every level of the path", () => {
    assert.equal(part('{"a":{"b":1},"a":{"c":2}}', ["a", "b"]), undefined);
    assert.equal(part('{"a":{"b":1},"\\u0061":{"b":2,"b":3}}', ["a", "b"]), "3");
  });
});
