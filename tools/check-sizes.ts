/**
 * Fails when a function of the product is longer than 70 lines or a line of the project's own text is longer than 120 columns.
 * A function counts from its first line to its last, with what is nested in it.
 */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { extname, resolve } from "node:path";
import { parseSync, Visitor } from "vite";

const MAX_FUNCTION_LINES = 70;
const MAX_COLUMNS = 120;

/** Folders whose functions are measured. */
const PRODUCT = /^(?:src|console\/src)\//;
/** Written by a program, or by others: not our text. */
const FOREIGN = /^(?:gen\/|LICENSE$|(?:.*\/)?package-lock\.json$|docs\/operating\/dashboard\.json$|test\/.*fixtures\/)/;
const TEXT = new Set([
  ...[".ts", ".tsx", ".js", ".cjs", ".mjs", ".css", ".html", ".sql", ".proto", ".md", ".json", ".yaml", ".yml", ".sh"],
]);

const root = resolve(import.meta.dirname, "..");
// Files that git does not know yet count too; those that it ignores do not.
const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
const files = listed.toString("utf8").split("\0");
const problems: string[] = [];

for (const file of files.filter((file) => TEXT.has(extname(file)) && !FOREIGN.test(file))) {
  let text: string;
  try {
    text = readFileSync(resolve(root, file), "utf8");
  } catch {
    continue; // deleted, and not committed yet
  }
  problems.push(...longLines(file, text));
  if (PRODUCT.test(file) && /\.[cm]?tsx?$/.test(file)) problems.push(...longFunctions(file, text));
}

for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;

function longLines(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, at) => {
    // A link cannot be wrapped, nor can a row of a table.
    const isWhole = file.endsWith(".md") && /^\s*\||^\s*(?:[-*]\s|\[[^\]]+\]:\s)?\S*https?:\S+$/.test(line);
    const columns = [...line].length;
    return columns > MAX_COLUMNS && !isWhole
      ? [`${file}:${at + 1}: the line has ${columns} columns; at most ${MAX_COLUMNS} are allowed.`]
      : [];
  });
}

function longFunctions(file: string, text: string): string[] {
  const found: string[] = [];
  const measure = (node: { start: number; end: number }) => {
    const first = lineOf(text, node.start);
    const lines = lineOf(text, node.end) - first + 1;
    if (lines > MAX_FUNCTION_LINES)
      found.push(`${file}:${first}: the function has ${lines} lines; at most ${MAX_FUNCTION_LINES} are allowed.`);
  };
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new SyntaxError(`${file} cannot be parsed: ${errors[0]?.message}`);
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(program);
  return found;
}

function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at !== -1 && at < offset; at = text.indexOf("\n", at + 1)) line++;
  return line;
}
