import { bodyOf, type Draft } from "./draft.ts";

export type Language = "curl" | "TypeScript" | "Python";

/** The draft as a program, with the key in the environment variable CHORUS_API_KEY. @param origin address of the service */
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
  // Files are read when the line runs: base64 of them would drown it.
  const files = draft.files.map(
    ({ name, mediaType }) =>
      `printf '%s' ${shell(`{"name": ${JSON.stringify(name)}, "media_type": ${JSON.stringify(mediaType)}, "data": "`)}\n  base64 < ${shell(name)} | tr -d '\\n'\n  printf '"}'`,
  );
  const before = `{\n${members.join(",\n")},\n  "attachments": [`;
  return `{\n  printf '%s' ${shell(before)}\n  ${files.join("\n  printf ','\n  ")}\n  printf ']}'\n} | ${call} --data-binary @-`;
}

function typescript(draft: Draft, origin: string): string {
  const members = Object.entries(bodyOf(draft)).map(([name, value]) => `  ${name}: ${JSON.stringify(value)},`);
  const { files } = draft;
  if (files.length > 0) {
    const list = files.map(
      ({ name, mediaType }) =>
        `    { name: ${JSON.stringify(name)}, media_type: ${JSON.stringify(mediaType)}, data: readFileSync(${JSON.stringify(name)}, "base64") },`,
    );
    members.push(`  attachments: [\n${list.join("\n")}\n  ],`);
  }
  if (draft.mode === "json_schema")
    members.push(`  response_format: { type: "json_schema", schema: ${indent(draft.schema, "  ")} },`);
  const body = `{\n${members.join("\n")}\n}`;
  const head = [
    ...(files.length > 0 ? ['import { readFileSync } from "node:fs";'] : []),
    'import { createChorus } from "chorus/client";',
    "",
    `const chorus = createChorus({ baseUrl: ${JSON.stringify(origin)}, apiKey: process.env.CHORUS_API_KEY ?? "" });`,
  ].join("\n");
  return isStreamed(draft)
    ? `${head}\nconst stream = chorus.stream(${body});\nfor await (const event of stream) {\n  if (event.type === "delta") process.stdout.write(event.text);\n}\nconsole.log((await stream.done()).usage);`
    : `${head}\nconst { structured, usage } = await chorus.generate(${body});\nconsole.log(structured, usage);`;
}

function python(draft: Draft, origin: string): string {
  const { files } = draft;
  const members = Object.entries(bodyOf(draft)).map(
    ([name, value]) => `    ${JSON.stringify(name)}: ${literal(value)},`,
  );
  if (files.length > 0) {
    const list = files.map(
      ({ name, mediaType }) =>
        `        {"name": ${JSON.stringify(name)}, "media_type": ${JSON.stringify(mediaType)}, "data": base64.b64encode(open(${JSON.stringify(name)}, "rb").read()).decode()},`,
    );
    members.push(`    "attachments": [\n${list.join("\n")}\n    ],`);
  }
  if (draft.mode === "json_schema")
    members.push(
      `    "response_format": {"type": "json_schema", "schema": json.loads(${JSON.stringify(draft.schema)})},`,
    );
  const imports = [...(files.length > 0 ? ["base64"] : []), "json", "os", "", "import requests"];
  const head = `${imports.map((name) => (name && !name.startsWith("import") ? `import ${name}` : name)).join("\n")}

body = {
${members.join("\n")}
}
headers = {"X-API-Key": os.environ["CHORUS_API_KEY"]}`;
  if (!isStreamed(draft))
    return `${head}
response = requests.post("${origin}/v1/generate", json=body, headers=headers)
response.raise_for_status()
print(response.json()["structured"])`;
  return `${head}
with requests.post("${origin}/v1/generate:stream", json=body, headers=headers, stream=True) as response:
    response.raise_for_status()
    response.encoding = "utf-8"
    event = ""
    # A line ends with a line feed here, and with nothing else that Unicode takes for one.
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

/** A value as Python writes it; its strings are JSON's. */
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

/** A text as one word of a shell. */
function shell(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

function indent(text: string, by: string): string {
  return text.trim().replaceAll("\n", `\n${by}`);
}
