import { create, toBinary } from "@bufbuild/protobuf";
import { GenerateRequestSchema, Role } from "../../gen/chorus/v1/generation_pb.js";
import { png } from "../engine/attachments/files.ts";

/** A request body that is costly to read. */
interface Costly {
  /** A path of the public listener (`/v1/…`), or of the internal one. */
  path: string;
  type: string;
  body: Uint8Array;
}

const MB = 1024 * 1024;
const RPC = "/chorus.v1.GenerationService/Generate";

const rest = (body: unknown): Costly => ({
  path: "/v1/generate",
  type: "application/json",
  body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
});
const fill = (unit: string, bytes: number) => unit.repeat(Math.floor(bytes / Buffer.byteLength(unit)));
const messages = (count: number, content: string) => Array(count).fill({ role: "user", content });
const file = (media_type: string, data: Uint8Array) => ({
  name: "f",
  media_type,
  data: Buffer.from(data).toString("base64"),
});
const strict = (schema: string) => rest(`{"prompt":"p","response_format":{"type":"json_schema","schema":${schema}}}`);
const properties = (count: number, rule: string) =>
  `{"type":"object","properties":{${Array.from({ length: count }, (_, i) => `"p${i}":${rule}`).join(",")}}}`;
const ENGLISH = "The invoice of 31 January was paid late, and nobody knows why. ";

const VALUES = Array.from({ length: 40_000 }, (_, i) => `"v${i}"`).join(",");
const MANY = Buffer.from(fill(ENGLISH, 12 * MB));

/** Bodies that hold a naive reader for long, by name. */
export const BODIES: ReadonlyArray<[name: string, create: () => Costly]> = [
  ["64 MB of escaped quotes in a prompt", () => rest(`{"prompt":"${fill('\\"', 64 * MB - 100)}"}`)],
  ["40 messages of 1.5 MB of English", () => rest({ messages: messages(40, fill(ENGLISH, 1.5 * MB)) })],
  ["40 messages of 1.5 MB of Chinese", () => rest({ messages: messages(40, fill("東京都の天気は", 1.5 * MB)) })],
  ["40 messages of 8,000 characters of Chinese", () => rest({ messages: messages(40, randomHan(8000)) })],
  ["a message of 1 MB of one letter", () => rest({ messages: messages(1, fill("a", MB)) })],
  ["a message of 1 MB of spaces and a dot", () => rest({ messages: messages(1, `.${fill(" ", MB)}.`) })],
  ["a message of 4 MB of quotes and line feeds", () => rest({ messages: messages(1, fill('"\n', 4 * MB)) })],
  ["a prompt of 200,000 random Chinese characters", () => rest({ prompt: randomHan(200_000) })],
  ["a prompt of 60 MB of emoji", () => rest({ prompt: fill("😀", 60 * MB) })],
  [
    "5 text files of 9 MB",
    () => rest({ prompt: "p", attachments: Array(5).fill(file("text/plain", Buffer.from(fill(ENGLISH, 9 * MB)))) }),
  ],
  [
    "a file that is 60 MB of invalid base64",
    () => rest({ prompt: "p", attachments: [{ name: "f", media_type: "text/plain", data: fill("a!", 60 * MB) }] }),
  ],
  [
    "a file whose name has 60 MB",
    () => rest({ prompt: "p", attachments: [{ name: fill("é", 60 * MB), media_type: "text/plain", data: "YQ==" }] }),
  ],
  [
    "a file whose media type has 60 MB",
    () => rest({ prompt: "p", attachments: [{ name: "f", media_type: fill(" ;", 60 * MB), data: "YQ==" }] }),
  ],
  ["60 MB of an unknown member", () => rest(`{"prompt":"p","x":"${fill("\\u00e9", 60 * MB)}"}`)],
  [
    "99,000 unknown members with names of 600 bytes",
    () =>
      rest(`{${Array.from({ length: 99_000 }, (_, i) => `"${fill("\\u0061", 600)}${i}":0`).join(",")},"prompt":"p"}`),
  ],
  ["99,000 nested lists", () => rest(`{"prompt":"p","x":${fill("[", 49_000)}${fill("]", 49_000)}}`)],
  ["99,000 numbers in lists", () => rest(`{"prompt":"p","x":[${fill("[1],", 49_000 * 4)}1]}`)],
  ["a number of 60 MB", () => rest(`{"prompt":"p","max_tokens":${fill("9", 60 * MB)}}`)],
  ["64 MB of spaces", () => rest(`{"prompt":"p"${fill(" ", 64 * MB - 100)}}`)],
  ["invalid JSON at the end of 60 MB", () => rest(`{"prompt":"${fill("a", 60 * MB)}"`)],
  [
    "invalid UTF-8 at the end of 60 MB",
    () => {
      const body = rest(`{"prompt":"${fill("東", 60 * MB)}"}`);
      body.body[body.body.length - 3] = 0xff;
      return body;
    },
  ],
  ["4 stop sequences of 15 MB", () => rest({ prompt: "p", stop_sequences: Array(4).fill(fill("é", 15 * MB)) })],
  ["a schema of 20,000 properties", () => strict(properties(20_000, '{"type":"string","minLength":1}'))],
  [
    "a schema of 5,000 properties with patterns",
    () => strict(properties(5_000, '{"type":"string","pattern":"^(a+)+$"}')),
  ],
  ["a schema of 2 MB of text", () => strict(`{"type":"object","description":"${fill("a ", 2 * MB)}"}`)],
  ["a schema of 30 MB of text", () => strict(`{"type":"object","description":"${fill("a ", 20 * MB)}"}`)],
  ["a schema with 40,000 enum values", () => strict(`{"type":"object","properties":{"a":{"enum":[${VALUES}]}}}`)],
  [
    "Connect JSON: 64 MB of escaped quotes",
    () => ({ ...rest(`{"prompt":"${fill('\\"', 64 * MB - 100)}"}`), path: RPC }),
  ],
  [
    "Connect JSON: 40 messages of 1.5 MB",
    () => ({
      ...rest({ messages: Array(40).fill({ role: "ROLE_USER", content: fill(ENGLISH, 1.5 * MB) }) }),
      path: RPC,
    }),
  ],
  ["protobuf: 40 messages of 1.5 MB of Chinese", () => proto(Array(40).fill(fill("東京都の天気は", 1.5 * MB)))],
  ["protobuf: a message of 60 MB", () => proto([fill(ENGLISH, 60 * MB)])],
  [
    "protobuf: 5 files of 12 MB",
    () => ({
      path: RPC,
      type: "application/proto",
      body: toBinary(
        GenerateRequestSchema,
        create(GenerateRequestSchema, {
          prompt: "p",
          attachments: Array(5).fill({ name: "f", mediaType: "text/plain", data: MANY }),
        }),
      ),
    }),
  ],
  // As much as may be sent to a vendor.
  ["a message of 3.9 million quotes and line feeds", () => rest({ messages: messages(1, fill('"\n', 3_900_000)) })],
  ["a message of 3.9 million Chinese characters", () => rest({ messages: messages(1, fill("東京", 11_700_000)) })],
  [
    "an image of 14 MB",
    () => rest({ prompt: "p", attachments: [file("image/png", Buffer.concat([png(1, 1), Buffer.alloc(14 * MB)]))] }),
  ],
];

/** One body for each way of reading and refusing it. `npm test` measures these, `npm run measure` all. */
export const USUAL: ReadonlySet<string> = new Set([
  "64 MB of escaped quotes in a prompt",
  "40 messages of 1.5 MB of English",
  "40 messages of 8,000 characters of Chinese",
  "5 text files of 9 MB",
  "99,000 unknown members with names of 600 bytes",
  "99,000 nested lists",
  "invalid JSON at the end of 60 MB",
  "a schema of 5,000 properties with patterns",
  "Connect JSON: 40 messages of 1.5 MB",
  "protobuf: 40 messages of 1.5 MB of Chinese",
  "a message of 3.9 million quotes and line feeds",
  "an image of 14 MB",
]);

function proto(texts: string[]): Costly {
  const request = create(GenerateRequestSchema, { messages: texts.map((content) => ({ role: Role.USER, content })) });
  return { path: RPC, type: "application/proto", body: toBinary(GenerateRequestSchema, request) };
}

/** Chinese characters in an order that a tokenizer does not know. */
function randomHan(length: number): string {
  let state = 1;
  const codes = Array.from({ length }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return 0x4e00 + (state % 20_000);
  });
  return (
    String.fromCharCode(...codes.slice(0, 100)) +
    codes
      .slice(100)
      .map((code) => String.fromCharCode(code))
      .join("")
  );
}
