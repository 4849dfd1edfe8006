import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** A change of the rules that a test or a schedule should notice. */
export interface Mutant {
  /** By which the instrumented sources know it. */
  id: string;
  /** Names it as long as its line stays as it is: file, line of source, change, and a number among equals. */
  key: string;
  file: string;
  line: number;
  /** What is replaced, and by what, on one line each. */
  original: string;
  replacement: string;
}

/** What is used of Stryker. It is no package of the project, so its types are not there when types are checked. */
interface Stryker {
  Instrumenter: new (
    logger: object,
  ) => {
    instrument(files: readonly object[], options: object): Promise<{ files: File[]; mutants: Planted[] }>;
  };
}
interface File {
  name: string;
  content: string;
}
interface Planted {
  id: string;
  fileName: string;
  replacement: string;
  /** `Ignored`, or undefined. */
  status?: string;
  /** Lines and columns from 0. */
  location: { start: { line: number; column: number }; end: { line: number; column: number } };
}
const STRYKER: string = "@stryker-mutator/instrumenter";

/** The parts of a syntax tree that are read here. */
interface Node {
  type: string;
  name?: string;
  callee?: Node;
  object?: Node;
  property?: Node;
  id?: Node;
}
interface Path {
  node: Node;
  parentPath: Path | null;
}

/** Logs and metrics are no rules: tests of telemetry cover them. Texts of errors are for people. */
const ignorer = {
  shouldIgnore({ node, parentPath }: Path): string | undefined {
    const call = node.type === "ExpressionStatement" ? (node as { expression?: Node }).expression : node;
    if (call && /^(Optional)?CallExpression$/.test(call.type) && isReport(call.callee)) return "a log or a metric";
    const isText = /^(StringLiteral|TemplateLiteral)$/.test(node.type);
    if (isText && parentPath?.node.type === "NewExpression" && /Error$/.test(parentPath.node.callee?.name ?? ""))
      return "the text of an error";
    return undefined;
  },
};

/** Whether a method of a log or of telemetry is called. */
function isReport(callee: Node | undefined): boolean {
  const { object } = callee ?? {};
  const owner = object?.property ?? object;
  return /^(log|telemetry)$/.test(owner?.name ?? owner?.id?.name ?? "");
}

const quiet = new Proxy({}, { get: (_, name) => () => !String(name).startsWith("is") && undefined });

/**
 * Copies the project to a folder, with all mutants of some files in place, each behind a switch.
 * @param root folder of the project
 * @param files paths in it
 */
export async function instrument(root: string, folder: string, files: readonly string[]): Promise<Mutant[]> {
  const texts = new Map(files.map((name) => [name, readFileSync(join(root, name), "utf8")]));
  const sources = [...texts].map(([name, content]) => ({ name, content, mutate: true }));
  const options = { excludedMutations: [], noHeader: true, plugins: null, ignorers: [ignorer] };
  const { Instrumenter } = (await import(STRYKER)) as Stryker;
  const result = await new Instrumenter(quiet).instrument(sources, options);
  for (const name of readdirSync(root)) {
    if (["src", "test"].includes(name))
      cpSync(join(root, name), join(folder, name), { recursive: true, filter: isOwn });
    else if (name !== ".git") symlinkSync(join(root, name), join(folder, name));
  }
  for (const { name, content } of result.files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    // Noting what is reached takes longer than the rules themselves.
    writeFileSync(join(folder, name), content.replaceAll("stryCov_9fa48(", "stryIsExploring && stryCov_9fa48("));
  }
  const counts = new Map<string, number>();
  return result.mutants
    .filter(({ status }) => status !== "Ignored")
    .map(({ id, fileName: file, location: { start, end }, replacement }) => {
      const lines = (texts.get(file) ?? "").split("\n");
      const cut = lines.slice(start.line, end.line + 1);
      cut[cut.length - 1] = cut.at(-1)?.slice(0, end.column) ?? "";
      cut[0] = cut[0]?.slice(start.column) ?? "";
      const original = short(cut.join(" "));
      const name = `${file} | ${lines[start.line]?.trim()} | ${original} => ${short(replacement)}`;
      const count = (counts.get(name) ?? 0) + 1;
      counts.set(name, count);
      const key = count === 1 ? name : `${name} | ${count}`;
      return { id, key, file, line: start.line + 1, original, replacement: short(replacement) };
    });
}

function isOwn(path: string): boolean {
  return !path.endsWith("/node_modules");
}

function short(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length > 90 ? `${line.slice(0, 60)} … ${line.slice(-24)}` : line;
}
