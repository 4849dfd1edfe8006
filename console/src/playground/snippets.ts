import { create, toJson } from "@bufbuild/protobuf";
import { GenerateRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { bodyOf, type Draft, isStreamed, requestOf } from "./draft.ts";
import { python } from "./python-snippet.ts";

export const LANGUAGES = ["curl", "TypeScript", "Python", "buf curl", "grpcurl"] as const;
export type Language = (typeof LANGUAGES)[number];

const WRITERS: Record<Language, (draft: Draft, origin: string) => string> = {
  curl,
  TypeScript: typescript,
  Python: python,
  "buf curl": (draft) => {
    const method = `"\${CHORUS_RPC_URL:-http://127.0.0.1:8081}/${methodOf(draft)}"`;
    return rpc(draft, `buf curl -H "x-api-key: $CHORUS_API_KEY" ${method}`, "-d @-");
  },
  grpcurl: (draft) => {
    const [service, name] = methodOf(draft).split("/");
    const method = `"\${CHORUS_RPC_HOST:-127.0.0.1:8081}" ${service}/${name}`;
    // grpcurl takes options only before the address.
    return rpc(draft, `grpcurl -plaintext -H "x-api-key: $CHORUS_API_KEY" -d @ ${method}`, "");
  },
};

/** The draft as a program that reads the API key from CHORUS_API_KEY. @param origin address of the service */
export function snippet(language: Language, draft: Draft, origin: string): string {
  return WRITERS[language](draft, origin);
}

function curl(draft: Draft, origin: string): string {
  const members = Object.entries(bodyOf(draft)).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  if (draft.mode === "json_schema")
    members.push(`  "response_format": {"type": "json_schema", "schema": ${indent(draft.schema, "  ")}}`);
  const path = isStreamed(draft) ? "/v1/generate:stream" : "/v1/generate";
  const call = `curl -N ${origin}${path} \\\n  -H "X-API-Key: $CHORUS_API_KEY" -H "Content-Type: application/json"`;
  return withInput(draft, members, "media_type", call, ["-d @-", "--data-binary @-"]);
}

/** A command that takes the request as the JSON of protobuf from its standard input. */
function rpc(draft: Draft, call: string, option: string): string {
  const message = create(GenerateRequestSchema, requestOf({ ...draft, files: [] }));
  const members = Object.entries(Object(toJson(GenerateRequestSchema, message))).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  return withInput(draft, members, "mediaType", call, [option, option]);
}

function methodOf(draft: Draft): string {
  return `chorus.v1.GenerationService/${isStreamed(draft) ? "StreamGenerate" : "Generate"}`;
}

/**
 * A command with the request as its input. It reads the files when it runs, because their base64 text would make it
 * too long to read.
 * @param type name of the member for the media type of a file
 * @param options with which the command reads its input: as text, and with files
 */
function withInput(
  { files }: Draft,
  members: string[],
  type: string,
  call: string,
  [text, binary]: [string, string],
): string {
  if (files.length === 0) return `${`${call} ${text}`.trim()} <<'JSON'\n{\n${members.join(",\n")}\n}\nJSON`;
  const parts = files.map(({ name, mediaType }) => {
    const member = `{"name": ${JSON.stringify(name)}, ${JSON.stringify(type)}: ${JSON.stringify(mediaType)}, "data": "`;
    return [`  printf '%s' ${shell(member)}`, `  base64 < ${shell(name)} | tr -d '\\n'`, `  printf '"}'`].join("\n");
  });
  return [
    "{",
    `  printf '%s' ${shell(`{\n${[...members, '  "attachments": ['].join(",\n")}`)}`,
    parts.join("\n  printf ','\n"),
    "  printf ']}'",
    `} | ${`${call} ${binary}`.trim()}`,
  ].join("\n");
}

function typescript(draft: Draft, origin: string): string {
  const members = Object.entries(bodyOf(draft)).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
  const { files } = draft;
  if (files.length > 0) {
    const list = files.map((file) => {
      const [name, mediaType] = [JSON.stringify(file.name), JSON.stringify(file.mediaType)];
      return `    { name: ${name}, media_type: ${mediaType}, data: readFileSync(${name}, "base64") },`;
    });
    members.push(`  attachments: [\n${list.join("\n")}\n  ],`);
  }
  if (draft.mode === "json_schema")
    members.push(`  response_format: { type: "json_schema", schema: ${indent(draft.schema, "  ")} },`);
  const body = `{\n${members.join("\n")}\n}`;
  const setUp = [
    ...(files.length > 0 ? ['import { readFileSync } from "node:fs";'] : []),
    'import { createChorus } from "chorus-client";',
    "",
    `const chorus = createChorus({ baseUrl: ${JSON.stringify(origin)}, apiKey: process.env.CHORUS_API_KEY ?? "" });`,
  ].join("\n");
  if (!isStreamed(draft))
    return `${setUp}\nconst { structured, usage } = await chorus.generate(${body});\nconsole.log(structured, usage);`;
  return `${setUp}
const stream = chorus.stream(${body});
for await (const event of stream) {
  if (event.type === "delta") process.stdout.write(event.text);
}
console.log((await stream.done()).usage);`;
}

/** Quotes a text as one word of a shell. */
function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function indent(text: string, by: string): string {
  return text.trim().replaceAll("\n", `\n${by}`);
}
