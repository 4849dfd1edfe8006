/**
 * Checks sizes: no function of the product has more than 70 lines, no line of our own text has more than 120 columns.
 *   node tools/check-sizes.ts [FOLDER]
 * FOLDER is a git work tree; default: this project. Untracked files count, ignored files do not. Prints each violation
 * with file and line, and exits with 1 if there is any.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname, resolve } from "node:path";
import { parseSync, Visitor } from "vite";

/** Counted from the first line of a function to its last line, including nested functions. */
const MAX_FUNCTION_LINES = 70;
/** In bytes of UTF-8 in TypeScript, because some tools count bytes; elsewhere in code points. */
const MAX_COLUMNS = 120;

/** Code whose functions are measured. */
const PRODUCT = /^(?:src|console\/src)\/.*\.[cm]?tsx?$/;
/** Files that a program writes, or that come from elsewhere. */
const FOREIGN = /^(?:gen\/|LICENSE$|(?:.*\/)?package-lock\.json$|docs\/operating\/dashboard\.json$|test\/.*fixtures\/)/;
const TEXT = new Set([
  ...[".ts", ".tsx", ".js", ".cjs", ".mjs", ".css", ".html", ".sql", ".proto", ".md", ".json", ".yaml", ".yml", ".sh"],
]);
/** A row of a table, or a line that consists of a link: Markdown cannot wrap either. */
const UNWRAPPABLE = /^\s*\||^\s*(?:[-*]\s|\[[^\]]+\]:\s)?\S*https?:\S+$/;

function check(root: string): string[] {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], { cwd: root });
  const files = new Set(listed.toString("utf8").split("\0"));
  const problems: string[] = [];
  for (const file of files) {
    const path = resolve(root, file);
    // git still lists a deleted file until the deletion is staged.
    if (!TEXT.has(extname(file)) || FOREIGN.test(file) || !existsSync(path)) continue;
    const text = readFileSync(path, "utf8");
    problems.push(...longLines(file, text));
    if (PRODUCT.test(file)) problems.push(...longFunctions(file, text));
  }
  return problems;
}

function longLines(file: string, text: string): string[] {
  return text.split(/\r?\n/).flatMap((line, index) => {
    const columns = /\.tsx?$/.test(file) ? Buffer.byteLength(line) : [...line].length;
    if (columns <= MAX_COLUMNS || (file.endsWith(".md") && UNWRAPPABLE.test(line))) return [];
    return [`${file}:${index + 1}: the line has ${columns} columns; at most ${MAX_COLUMNS} are allowed.`];
  });
}

function longFunctions(file: string, text: string): string[] {
  const { program, errors } = parseSync(file, text);
  const [error] = errors;
  if (error) return [`${file}:${lineOf(text, error.labels[0]?.start ?? 0)}: cannot be parsed: ${error.message}`];
  const problems: string[] = [];
  const measure = ({ start, end }: { start: number; end: number }) => {
    const first = lineOf(text, start);
    const lines = lineOf(text, end) - first + 1;
    if (lines > MAX_FUNCTION_LINES)
      problems.push(`${file}:${first}: the function has ${lines} lines; at most ${MAX_FUNCTION_LINES} are allowed.`);
  };
  new Visitor({
    FunctionDeclaration: measure,
    FunctionExpression: measure,
    ArrowFunctionExpression: measure,
  }).visit(program);
  return problems;
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}

const problems = check(resolve(process.argv[2] ?? resolve(import.meta.dirname, "..")));
for (const problem of problems) process.stderr.write(`${problem}\n`);
if (problems.length > 0) process.exitCode = 1;
