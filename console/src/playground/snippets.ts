import { bodyOf, type Draft } from "./draft.ts";

export type Language = "curl" | "TypeScript" | "Python";

/** The draft as a program that reads the API key from CHORUS_API_KEY. @param origin address of the service */
export function snippet(language: Language, draft: Draft, origin: string): string {
  const write = { curl, TypeScript: typescript, Python: python }[language];
  return write(draft, origin);
}

function isStreamed({ mode }: Draft): boolean {
  return mode !== "json_schema";
}

function curl(draft: Draft, origin: string): string {
  const path = isStreamed(draft) ? "/v1/generate:stream" : "/v1/generate";
  const members = Object.entries(bodyOf(draft)).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)}`,
  );
  if (draft.mode === "json_schema")
    members.push(`  "response_format": {"type": "json_schema", "schema": ${indent(draft.schema, "  ")}}`);
  const call = `curl -N ${origin}${path} \\\n  -H "X-API-Key: $CHORUS_API_KEY" -H "Content-Type: application/json"`;
  if (draft.files.length === 0) return `${call} -d @- <<'JSON'\n{\n${members.join(",\n")}\n}\nJSON`;
  // The command reads the files when it runs, because their base64 text would make it too long to read.
  const files = draft.files.map(({ name, mediaType }) => {
    const member = `{"name": ${JSON.stringify(name)}, "media_type": ${JSON.stringify(mediaType)}, "data": "`;
    return [`  printf '%s' ${shell(member)}`, `  base64 < ${shell(name)} | tr -d '\\n'`, `  printf '"}'`].join("\n");
  });
  return [
    "{",
    `  printf '%s' ${shell(`{\n${members.join(",\n")},\n  "attachments": [`)}`,
    files.join("\n  printf ','\n"),
    "  printf ']}'",
    `} | ${call} --data-binary @-`,
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

function python(draft: Draft, origin: string): string {
  const { files } = draft;
  const members = Object.entries(bodyOf(draft)).map(
    ([name, value]) => `    ${JSON.stringify(name)}: ${literal(value)},`,
  );
  if (files.length > 0) {
    const list = files.map((file) => {
      const [name, mediaType] = [JSON.stringify(file.name), JSON.stringify(file.mediaType)];
      const data = `base64.b64encode(open(${name}, "rb").read()).decode()`;
      return `        {"name": ${name}, "media_type": ${mediaType}, "data": ${data}},`;
    });
    members.push(`    "attachments": [\n${list.join("\n")}\n    ],`);
  }
  if (draft.mode === "json_schema")
    members.push(
      `    "response_format": {"type": "json_schema", "schema": json.loads(${JSON.stringify(draft.schema)})},`,
    );
  const imports = [...(files.length > 0 ? ["base64"] : []), "json", "os", "", "import requests"];
  const setUp = `${imports.map((name) => (name && !name.startsWith("import") ? `import ${name}` : name)).join("\n")}

body = {
${members.join("\n")}
}
headers = {"X-API-Key": os.environ["CHORUS_API_KEY"]}`;
  if (!isStreamed(draft))
    return `${setUp}
response = requests.post("${origin}/v1/generate", json=body, headers=headers)
response.raise_for_status()
print(response.json()["structured"])`;
  return `${setUp}
with requests.post("${origin}/v1/generate:stream", json=body, headers=headers, stream=True) as response:
    response.raise_for_status()
    response.encoding = "utf-8"
    event = ""
    # Split at line feeds only: iter_lines would also split at other Unicode line breaks.
    for line in response.iter_lines(decode_unicode=True, delimiter="\\n"):
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            data = json.loads(line[6:])
            if event == "delta":
                print(data["text"], end="", flush=True)
            elif event in ("done", "error"):
                print("\\n", data)`;
}

/** A value as a Python literal. Strings have the same syntax as in JSON. */
function literal(value: unknown): string {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value === "object")
    return `{${Object.entries(value)
      .map(([name, one]) => `${JSON.stringify(name)}: ${literal(one)}`)
      .join(", ")}}`;
  return JSON.stringify(value);
}

/** Quotes a text as one word of a shell. */
function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function indent(text: string, by: string): string {
  return text.trim().replaceAll("\n", `\n${by}`);
}
