import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "vitest";

const SRC = resolve(import.meta.dirname, "../src");

/** Files at the top of src that every file may import. */
const LEAVES = new Set([
  "abort",
  "breaker",
  "config",
  "discovery",
  "failure",
  "fair-queue",
  "internal-errors",
  "json",
  "json-names",
  "log",
  "log-output",
  "make-folder",
  "names",
  "profiles",
  "random-hex",
  "resources",
  "telemetry",
  "terms",
  "thread-priority",
  "tracing",
  "turns",
  "version",
  "worker-job",
  "worker-pool",
]);

/** Composes the service from all parts; imported by no other part. */
const COMPOSITION = new Set([
  ...["announce", "first-run", "greeting", "main", "reload", "run", "shutdown", "start", "workers"],
]);

/** Folders that each folder may import besides itself. */
const ALLOWED_IMPORTS: Record<string, string[]> = {
  transport: ["service", "admission", "admin"],
  service: ["engine", "search", "admission", "admin"],
  engine: ["models", "search"],
  search: [],
  models: [],
  admission: ["store"],
  // Sign-in and keys share secrets, their caches and the caller with the request path.
  admin: ["admission", "store"],
  store: [],
  alerts: ["store"],
  calibration: ["engine", "models"],
  // The commands that migrate the database, replace a lost token and measure models need no running service.
  cli: ["admin", "calibration", "models", "store"],
  client: [],
};

function sources(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const entry of readdirSync(SRC, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || !entry.name.endsWith(".ts")) continue;
    const path = join(entry.parentPath, entry.name);
    const text = readFileSync(path, "utf8");
    const imports = [...text.matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g)].map(([, to = ""]) =>
      relative(SRC, resolve(dirname(path), to)),
    );
    found.set(relative(SRC, path), imports);
  }
  return found;
}

function partOf(file: string): string {
  return file.includes("/") ? (file.split("/")[0] ?? "") : file.replace(/\.ts$/, "");
}

test("folders import only the folders that the architecture allows", () => {
  const wrong: string[] = [];
  for (const [file, imports] of sources()) {
    const from = partOf(file);
    if (COMPOSITION.has(from)) continue;
    for (const to of imports) {
      const target = partOf(to);
      const allowed = target === from || LEAVES.has(target) || (ALLOWED_IMPORTS[from] ?? []).includes(target);
      if (!allowed) wrong.push(`${file} → ${to}`);
    }
  }
  assert.deepEqual(wrong, []);
});

test("the engine uses no HTTP server, the transport no SQL", () => {
  const forbidden: Array<[folder: string, pattern: RegExp]> = [
    ["engine", /"node:(http|http2|net)"|"@connectrpc/],
    ["transport", /"pg"|\bselect\s.+\bfrom\b/i],
    ["service", /"pg"|"node:(http|http2|net)"|"@connectrpc/],
    ["admin", /"pg"|"node:(http|http2|net)"|"@connectrpc/],
    // The client is published alone and needs only fetch.
    ["client", /(?:from|import) "(?!\.\/)/],
  ];
  for (const file of sources().keys()) {
    const text = readFileSync(join(SRC, file), "utf8");
    for (const [folder, pattern] of forbidden) if (partOf(file) === folder) assert.doesNotMatch(text, pattern, file);
  }
});

test("only the wire formats know the fields of vendors", () => {
  const fields = /max_completion_tokens|stop_reason|message_delta|anthropic-version|generationConfig|usageMetadata/;
  for (const file of sources().keys()) {
    // `transport/openai` offers OpenAI's format to callers.
    if (file.startsWith("models/wire/") || file.startsWith("transport/openai/")) continue;
    assert.doesNotMatch(readFileSync(join(SRC, file), "utf8"), fields, file);
  }
});

test("only the composition and the command line use the process object", () => {
  for (const file of sources().keys()) {
    if (COMPOSITION.has(partOf(file)) || partOf(file) === "cli") continue;
    assert.doesNotMatch(readFileSync(join(SRC, file), "utf8"), /\bprocess\.(env|exit|on|argv|cwd|std)/, file);
  }
});

test("no import cycles", () => {
  const graph = sources();
  const done = new Set<string>();
  const visit = (file: string, path: string[]): void => {
    const at = path.indexOf(file);
    assert.equal(at, -1, `cycle: ${[...path.slice(at), file].join(" → ")}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...path, file]);
    done.add(file);
  };
  for (const file of graph.keys()) visit(file, []);
});
