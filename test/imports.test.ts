import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { test } from "vitest";

const SRC = resolve(import.meta.dirname, "../src");

/** The arrows that docs/architecture.md draws: the folders of src, and those that each may import. */
function drawnArrows(): Map<string, string[]> {
  const text = readFileSync(resolve(SRC, "../docs/architecture.md"), "utf8");
  const [, table = ""] = /^\| folder \| imports \|\n.*\n((?:\|.*\n)+)/m.exec(text) ?? [];
  const rows = table.trim().split("\n");
  return new Map(
    rows.map((row) => {
      const [, folder = "", imports = ""] = row.split("|");
      const names = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name);
      return [names(folder)[0] ?? "", names(imports)];
    }),
  );
}

/** The files of src, with the files that each imports. */
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

/** Fails if an arrow leads back to where a path began. */
function assertNoCycles(graph: ReadonlyMap<string, readonly string[]>): void {
  const done = new Set<string>();
  const visit = (name: string, path: string[]): void => {
    const at = path.indexOf(name);
    assert.equal(at, -1, `cycle: ${[...path.slice(at), name].join(" → ")}`);
    if (done.has(name)) return;
    for (const next of graph.get(name) ?? []) visit(next, [...path, name]);
    done.add(name);
  };
  for (const name of graph.keys()) visit(name, []);
}

test("each folder and subfolder imports exactly the folders that the architecture draws", () => {
  const actual = new Map<string, Set<string>>();
  for (const [file, imports] of sources()) {
    const folder = dirname(file);
    const those = actual.get(folder) ?? new Set();
    for (const to of imports) if (dirname(to) !== folder) those.add(dirname(to));
    actual.set(folder, those);
  }
  const found = [...actual].map(([folder, imports]) => `${folder} → ${[...imports].sort().join(", ")}`);
  const drawn = [...drawnArrows()].map(([folder, imports]) => `${folder} → ${imports.toSorted().join(", ")}`);
  assert.deepEqual(found.sort(), drawn.sort());
});

test("no arrow between folders leads upward", () => {
  const arrows = drawnArrows();
  const folders = [...arrows.keys()];
  // Each row of the table imports only rows below it.
  for (const [i, folder] of folders.entries())
    for (const to of arrows.get(folder) ?? []) assert.ok(folders.indexOf(to) > i, `${folder} → ${to}`);
});

test("the engine uses no HTTP server, the transport no SQL", () => {
  const forbidden: Array<[folder: string, pattern: RegExp]> = [
    ["engine", /"node:(http|http2|net)"|"@connectrpc/],
    ["transport", /"pg"|\bselect\s.+\bfrom\b/i],
    ["generate", /"pg"|"node:(http|http2|net)"|"@connectrpc/],
    // The client is published alone and needs only fetch.
    ["client", /(?:from|import) "(?!\.\/)/],
  ];
  for (const file of sources().keys()) {
    const text = readFileSync(join(SRC, file), "utf8");
    for (const [folder, pattern] of forbidden)
      if (file.startsWith(`${folder}/`)) assert.doesNotMatch(text, pattern, file);
  }
});

test("only the wire formats know the fields of vendors", () => {
  const fields = /max_completion_tokens|stop_reason|message_delta|anthropic-version|generationConfig|usageMetadata/;
  for (const file of sources().keys()) {
    // Doors offer the formats of vendors to callers.
    if (/^(models\/wire|transport\/(openai|responses|anthropic|listeners))\//.test(file)) continue;
    assert.doesNotMatch(readFileSync(join(SRC, file), "utf8"), fields, file);
  }
});

test("only the process and the command line use the process object", () => {
  for (const file of sources().keys()) {
    if (/^(process|cli)\//.test(file)) continue;
    assert.doesNotMatch(readFileSync(join(SRC, file), "utf8"), /\bprocess\.(env|exit|on|argv|cwd|std)/, file);
  }
});

test("no import cycles between files", () => {
  assertNoCycles(sources());
});
