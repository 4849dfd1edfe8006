import assert from "node:assert/strict";
import { timestampDate } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { test } from "vitest";
import { type ChatMessage, ChatMessageSchema } from "../../../gen/chorus/v1/chat_pb.js";
import {
  Effort,
  type GenerateRequest,
  GenerateRequestSchema,
  MetricsGroupBy,
  MetricsInterval,
  MetricsRequestSchema,
  OutputShape,
  Role,
} from "../../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid } from "../../../src/contract/failure.ts";
import { memberName } from "../../../src/contract/json-names.ts";
import { decode, decodeForeign, decodeQuery } from "../../../src/transport/rest/decode.ts";

function read(text: string) {
  return decode(GenerateRequestSchema, text, JSON.parse(text));
}

function query(text: string) {
  return decodeQuery(MetricsRequestSchema, new URLSearchParams(text));
}

function schemaOf({ responseFormat }: GenerateRequest): string | undefined {
  return responseFormat?.format.case === "jsonSchema" ? responseFormat.format.value.schema : undefined;
}

function refuses(field: string, expected: RegExp) {
  return (error: unknown) => {
    assert.ok(error instanceof Failure);
    assert.equal(error.kind, "invalid_request");
    assert.equal(error.field, field);
    assert.match(error.message, expected);
    return true;
  };
}

/** The parts of a message of OpenAI's clients: the text of each, or its kind. */
function partsOf({ content }: ChatMessage): (string | undefined)[] {
  return content.map(({ part }) => (part.case === "text" ? part.value.text : part.case));
}

test("reads a string in place of a list of messages or strings where the contract allows it", () => {
  const parts = (content: unknown) => {
    const text = JSON.stringify({ role: "user", content });
    return partsOf(decode(ChatMessageSchema, text, JSON.parse(text)).message);
  };
  assert.deepEqual(parts("a"), ["a"]);
  assert.deepEqual(parts([{ type: "text", text: "a" }]), ["a"]);
  for (const absent of ["", [], null, undefined]) assert.deepEqual(parts(absent), []);
  for (const wrong of [1, true, { type: "text", text: "a" }])
    assert.throws(() => parts(wrong), refuses("content", /a string or a list/));
  assert.throws(() => parts(["a"]), refuses("content[0]", /an object/));
});

test("reports an unknown member of another API, unless its value asks for nothing", () => {
  const strictly = (value: object) =>
    decodeForeign(ChatMessageSchema, JSON.stringify(value), value, (name) => {
      throw invalid(name, `${name} is not supported.`);
    });
  const message = (members: object) => ({ role: "user", content: [{ type: "text", text: "a", ...members }] });
  for (const nothing of [null, false, "", [], {}]) {
    assert.deepEqual(partsOf(strictly({ ...message({ other: nothing }), more: nothing })), ["a"]);
  }
  for (const something of [0, true, " ", [null], { a: null }]) {
    assert.throws(() => strictly({ ...message({}), other: something }), refuses("other", /not supported/));
    assert.throws(() => strictly(message({ other: something })), refuses("content[0].other", /not supported/));
  }
  // A member of another case of a union, which `decode` ignores.
  const image = { image_url: { url: "data:," } };
  assert.throws(() => strictly(message(image)), refuses("content[0].image_url", /not supported/));
  const { message: lenient, unknown } = decode(ChatMessageSchema, "{}", message(image));
  assert.deepEqual([partsOf(lenient), unknown], [["a"], []]);
});

test("reads every field", () => {
  const { message, unknown } = read(`{
    "prompt": "p", "messages": [{"role": "system", "content": "s"}, {"content": "", "role": "assistant"}],
    "system": "sys",
    "attachments": [{"name": "n", "media_type": "text/plain", "data": "aGk="}], "effort": "high", "temperature": 1.5,
    "max_tokens": 1e3, "stop_sequences": ["a", "b"], "output_shape": "tradeoffs",
    "response_format": {"type": "json_schema", "schema": {"10": 1.0, "2": [ ]}},
    "web_search": false, "intelligence_trace": true, "continue": false}`);
  assert.deepEqual(unknown, []);
  assert.equal(message.prompt, "p");
  assert.deepEqual(
    message.messages.map(({ role, content }) => [role, content]),
    [
      [Role.SYSTEM, "s"],
      [Role.ASSISTANT, ""],
    ],
  );
  assert.equal(message.system, "sys");
  const [file] = message.attachments;
  assert.deepEqual([file?.name, file?.mediaType, `${Buffer.from(file?.data ?? [])}`], ["n", "text/plain", "hi"]);
  assert.equal(message.effort, Effort.HIGH);
  assert.equal(message.temperature, 1.5);
  assert.equal(message.maxTokens, 1000);
  assert.deepEqual(message.stopSequences, ["a", "b"]);
  assert.equal(message.outputShape, OutputShape.TRADEOFFS);
  assert.equal(message.responseFormat?.format.case, "jsonSchema");
  assert.equal(schemaOf(message), '{"10": 1.0, "2": [ ]}');
  assert.deepEqual([message.webSearch, message.intelligenceTrace, message.continueLastMessage], [false, true, false]);
});

test("treats null, an empty string and an empty list as absent, for every field", () => {
  const names = GenerateRequestSchema.fields.map(memberName);
  for (const empty of ["null", '""', "[]"]) {
    for (const name of names) {
      const { message, unknown } = read(`{"${name}":${empty}}`);
      assert.deepEqual(unknown, []);
      assert.deepEqual(message, read("{}").message, `${name}: ${empty}`);
    }
    assert.equal(schemaOf(read(`{"response_format":{"type":"json_schema","schema":${empty}}}`).message), "");
    const required = [
      ["response_format.type", `{"response_format":{"type":${empty}}}`],
      ["messages[0].role", `{"messages":[{"role":${empty},"content":"a"}]}`],
      ...(empty === '""' ? [] : [["messages[0].content", `{"messages":[{"role":"user","content":${empty}}]}`]]),
    ] as [string, string][];
    for (const [field, body] of required) assert.throws(() => read(body), refuses(field, /required/), body);
  }
});

function isEmpty(value: unknown): boolean {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

test("names the field of a wrong type", () => {
  const rows: [body: string, field: string, expected: RegExp][] = [
    ['{"prompt":1}', "prompt", /must be a string/],
    ['{"prompt":["a"]}', "prompt", /must be a string/],
    ['{"messages":{}}', "messages", /must be a list/],
    ['{"messages":"a"}', "messages", /must be a list/],
    ['{"messages":[null]}', "messages[0]", /must be an object/],
    ['{"messages":[[]]}', "messages[0]", /must be an object/],
    ['{"messages":[{"role":"user","content":"a"},{"role":"user"}]}', "messages[1].content", /required/],
    ['{"messages":[{"role":"user","content":null}]}', "messages[0].content", /required/],
    ['{"messages":[{"content":"a"}]}', "messages[0].role", /required/],
    ['{"messages":[{"role":"User","content":"a"}]}', "messages[0].role", /"system", "user", "assistant"/],
    ['{"messages":[{"role":1,"content":"a"}]}', "messages[0].role", /one of/],
    ['{"messages":[{"role":"unspecified","content":"a"}]}', "messages[0].role", /one of/],
    ['{"messages":[{"role":"user","content":{}}]}', "messages[0].content", /must be a string/],
    ['{"system":false}', "system", /must be a string/],
    ['{"attachments":[{}]}', "attachments[0].media_type", /required/],
    ['{"attachments":[{"media_type":"a"}]}', "attachments[0].data", /required/],
    ['{"attachments":[{"media_type":"a","data":"a"}]}', "attachments[0].data", /base64/],
    ['{"attachments":[{"media_type":"a","data":"aa aa"}]}', "attachments[0].data", /base64/],
    ['{"attachments":[{"media_type":"a","data":"====" }]}', "attachments[0].data", /base64/],
    ['{"attachments":[{"media_type":"a","data":[1]}]}', "attachments[0].data", /base64/],
    ['{"effort":"extreme"}', "effort", /"auto", "low", "medium", "high"/],
    ['{"effort":2}', "effort", /one of/],
    ['{"temperature":"1"}', "temperature", /must be a number/],
    ['{"temperature":1e999}', "temperature", /must be a number/],
    ['{"max_tokens":1.5}', "max_tokens", /whole number/],
    ['{"max_tokens":"5"}', "max_tokens", /whole number/],
    ['{"max_tokens":true}', "max_tokens", /whole number/],
    ['{"stop_sequences":"a"}', "stop_sequences", /must be a list/],
    ['{"stop_sequences":["a",1]}', "stop_sequences[1]", /must be a string/],
    ['{"stop_sequences":[null]}', "stop_sequences[0]", /must be a string/],
    ['{"output_shape":"json"}', "output_shape", /"auto", "text", "extract"/],
    ['{"response_format":"json"}', "response_format", /must be an object/],
    ['{"response_format":{}}', "response_format.type", /required/],
    ['{"response_format":{"type":"json_object"}}', "response_format.type", /"text", "json_schema"/],
    ['{"web_search":"true"}', "web_search", /true or false/],
    ['{"intelligence_trace":1}', "intelligence_trace", /true or false/],
    ['{"continue":"yes"}', "continue", /true or false/],
  ];
  for (const [body, field, expected] of rows) assert.throws(() => read(body), refuses(field, expected), body);
});

test("keeps integers beyond 32 bits out of range instead of wrapping them", () => {
  assert.equal(read('{"max_tokens":4294967297}').message.maxTokens, 2147483647);
  assert.equal(read('{"max_tokens":-1e300}').message.maxTokens, -2147483648);
});

test("reports unknown members by path", () => {
  const { message, unknown } = read(
    '{"model":1,"prompt":"p","__proto__":{"temperature":2},"constructor":0,' +
      '"messages":[{"role":"user","content":"a","name":"n"}],' +
      '"response_format":{"type":"text","strict":true},"maxTokens":5,"":0}',
  );
  assert.deepEqual(unknown, [
    "model",
    "__proto__",
    "constructor",
    "messages[0].name",
    "response_format.strict",
    "maxTokens",
    "",
  ]);
  assert.equal(message.temperature, undefined);
  assert.equal(message.maxTokens, undefined);
});

test("reports the first hundred unknown members and the number of the others", () => {
  const text = JSON.stringify(Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`x${i}`, i])));
  const { unknown, more } = read(text);
  assert.equal(unknown.length, 100);
  assert.equal(more, 4_900);
  assert.equal(read('{"a":1}').more, 0);
  const [name] = read(JSON.stringify({ ["😀".repeat(1_000)]: 1 })).unknown;
  assert.ok(name && name.length <= 200 && name.isWellFormed());
});

test("replaces lone surrogates with U+FFFD", () => {
  assert.equal(read('{"prompt":"a\\ud800b\\udc00\\ud83d\\ude00"}').message.prompt, "a\ufffdb\ufffd😀");
});

test("decodes base64 with or without padding, in either alphabet", () => {
  const data = (text: string) => {
    const { message } = read(JSON.stringify({ attachments: [{ media_type: "a", data: text }] }));
    return Buffer.from(message.attachments[0]?.data ?? []).toString("hex");
  };
  assert.equal(data("+/8="), "fbff");
  assert.equal(data("-_8"), "fbff");
  assert.equal(data(""), "");
  fc.assert(
    fc.property(fc.uint8Array(), (bytes) =>
      assert.equal(data(Buffer.from(bytes).toString("base64")), Buffer.from(bytes).toString("hex")),
    ),
  );
});

test("copies the text of a schema unchanged from any position", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), fc.constantFrom("", " ", "\n\t"), (schema, other, space) => {
      const text = JSON.stringify(schema, null, space);
      const format = `{"schema":${text}${space},"type":"json_schema"}`;
      const body = `{${space}"x":${JSON.stringify(other)},"response_format":${space}${format},"prompt":"p"}`;
      assert.equal(schemaOf(read(body).message), isEmpty(schema) ? "" : text);
    }),
  );
  const digits = '{"__proto__":{"10":1.0,"9":123456789012345678901234567890},"a":"\\u0041"}';
  assert.equal(schemaOf(read(`{"response_format":{"type":"json_schema","schema":${digits}}}`).message), digits);
});

test("selects the case of a union by its tag and ignores members of other cases", () => {
  const { message, unknown } = read('{"response_format":{"schema":{"a":1},"type":"text","more":1}}');
  assert.equal(message.responseFormat?.format.case, "text");
  assert.deepEqual(unknown, ["response_format.more"]);
  for (const type of ["null", '"Text"', '"jsonSchema"', "1", "{}"]) {
    const body = `{"response_format":{"type":${type},"schema":{}}}`;
    assert.throws(
      () => read(body),
      refuses("response_format.type", type === "null" ? /required/ : /"text", "json_schema"/),
    );
  }
  assert.throws(() => read('{"response_format":{"schema":{}}}'), refuses("response_format.type", /required/));
});

test("reads a query and skips unknown and empty parameters", () => {
  const message = query("from=2026-01-31&to=2026-02-01T10:20:30.5%2B02:00&interval=hour&group_by=key&x=1");
  assert.deepEqual(message.startTime && timestampDate(message.startTime), new Date("2026-01-31T00:00:00Z"));
  assert.deepEqual(message.endTime && timestampDate(message.endTime), new Date("2026-02-01T08:20:30.500Z"));
  assert.equal(message.interval, MetricsInterval.HOUR);
  assert.equal(message.groupBy, MetricsGroupBy.KEY);
  assert.deepEqual(query("from=&to=&interval=&group_by=&"), query(""));
  assert.equal(
    timestampDate(query("from=2026-01-31t00:00:00z").startTime ?? assert.fail()).getTime(),
    Date.UTC(2026, 0, 31),
  );
  assert.equal(timestampDate(query("from=2024-02-29").startTime ?? assert.fail()).getTime(), Date.UTC(2024, 1, 29));
});

test("names a wrong parameter", () => {
  for (const [text, field, expected] of [
    ["from=yesterday", "from", /such as "2026-01-31T00:00:00Z"/],
    ["from=2026-02-30", "from", /a date/],
    ["from=2025-02-29T00:00:00Z", "from", /a date/],
    ["from=2026-13-01", "from", /a date/],
    ["from=2026-01-31T25:00:00Z", "from", /a date/],
    ["from=2026-01-31T00:00:00", "from", /a date/],
    ["from=1767225600", "from", /a date/],
    ["to=2026-1-1", "to", /a date/],
    ["interval=week", "interval", /"minute", "hour", "day", "month"/],
    ["interval=DAY", "interval", /one of/],
    ["group_by=model", "group_by", /"none", "key"/],
  ] as const) {
    assert.throws(() => query(text), refuses(field, expected), text);
  }
});
