import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { type ESTree, parseSync, Visitor } from "vite";

const SRC = resolve(import.meta.dirname, "../../src");

/** Folders that send SQL. `test/imports.test.ts` checks that no other folder does. */
const FOLDERS = ["store", "admission", "admin"];

/** A call of `query` in the product's code. */
export interface CallSite {
  /** Such as `admission/settle.ts:105`. */
  place: string;
  /**
   * Constant parts of the statement, in order; texts that are known only at run time go between them.
   * Undefined when the argument is no string or template literal.
   */
  parts: string[] | undefined;
}

interface Module {
  /** Initial values of the constants at the top of the file. */
  constants: Map<string, ESTree.Expression>;
  /** Names that are imported from another file of the project: local name → the file and the exported name. */
  imports: Map<string, { file: string; name: string }>;
  program: ESTree.Program;
  text: string;
}

/** Finds every call of a function `query`, of a pool, a client or a transaction. */
export function callSites(): CallSite[] {
  const modules = new Map<string, Module>();
  const load = (file: string): Module => {
    const module = modules.get(file) ?? readModule(file);
    modules.set(file, module);
    return module;
  };
  const files = FOLDERS.flatMap((folder) =>
    readdirSync(join(SRC, folder), { recursive: true, encoding: "utf8" })
      .filter((name) => name.endsWith(".ts"))
      .map((name) => join(SRC, folder, name)),
  );
  return files.flatMap((file) => {
    const module = load(file);
    const [misnamed] = /\b(?!query\b)\w+\??: Query\b/.exec(module.text) ?? [];
    if (misnamed) throw new Error(`${file} has "${misnamed}". Name it query, so that its calls are found here.`);
    const found: CallSite[] = [];
    new Visitor({
      CallExpression({ callee, arguments: [statement], start }) {
        const name = callee.type === "MemberExpression" ? callee.property : callee;
        if (name.type !== "Identifier" || name.name !== "query" || !statement) return;
        const line = module.text.slice(0, start).split("\n").length;
        found.push({ place: `${relative(SRC, file)}:${line}`, parts: partsOf(statement, module, load) });
      },
    }).visit(module.program);
    return found;
  });
}

function readModule(file: string): Module {
  const text = readFileSync(file, "utf8");
  const { program, errors } = parseSync(file, text);
  if (errors.length > 0) throw new SyntaxError(`${file} cannot be parsed: ${errors[0]?.message}`);
  const constants: Module["constants"] = new Map();
  const imports: Module["imports"] = new Map();
  for (const node of program.body) {
    const declared = node.type === "ExportNamedDeclaration" ? node.declaration : node;
    if (declared?.type === "VariableDeclaration" && declared.kind === "const") {
      for (const { id, init } of declared.declarations) {
        if (id.type === "Identifier" && init) constants.set(id.name, init);
      }
    }
    if (node.type !== "ImportDeclaration" || !node.source.value.startsWith(".")) continue;
    for (const specifier of node.specifiers) {
      if (specifier.type !== "ImportSpecifier" || specifier.imported.type !== "Identifier") continue;
      const from = resolve(dirname(file), node.source.value);
      imports.set(specifier.local.name, { file: from, name: specifier.imported.name });
    }
  }
  return { constants, imports, program, text };
}

/** @returns undefined unless the expression is a string or template literal, or the name of one */
function partsOf(node: ESTree.Argument, module: Module, load: (file: string) => Module): string[] | undefined {
  if (node.type === "Literal" || node.type === "Identifier") {
    const value = constantOf(node, module, load);
    return typeof value === "string" ? [value] : undefined;
  }
  if (node.type !== "TemplateLiteral") return undefined;
  const parts = [""];
  for (const [i, { value }] of node.quasis.entries()) {
    parts.push(`${parts.pop()}${value.cooked}`);
    const expression = node.expressions[i];
    if (!expression) break;
    const constant = constantOf(expression, module, load);
    if (constant === undefined) parts.push("");
    else parts.push(`${parts.pop()}${constant}`);
  }
  return parts;
}

/** Value of a constant expression; undefined when it is only known at run time. */
function constantOf(
  node: ESTree.Expression | ESTree.PrivateIdentifier,
  module: Module,
  load: (file: string) => Module,
): string | number | undefined {
  if (node.type === "Literal") {
    return typeof node.value === "string" || typeof node.value === "number" ? node.value : undefined;
  }
  if (node.type === "TemplateLiteral") {
    const parts = partsOf(node, module, load);
    return parts?.length === 1 ? parts[0] : undefined;
  }
  if (node.type === "BinaryExpression") {
    const [left, right] = [constantOf(node.left, module, load), constantOf(node.right, module, load)];
    if (typeof left !== "number" || typeof right !== "number") return undefined;
    return node.operator === "+" ? left + right : node.operator === "-" ? left - right : undefined;
  }
  if (node.type !== "Identifier") return undefined;
  const imported = module.imports.get(node.name);
  const owner = imported ? load(imported.file) : module;
  const init = owner.constants.get(imported?.name ?? node.name);
  return init && constantOf(init, owner, load);
}
