import { bodyOf, type Draft, isStreamed } from "./draft.ts";

/** The draft as a Python program. @param origin address of the service */
export function python(draft: Draft, origin: string): string {
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
