import { readdir, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { RUN_VARIABLE } from "./run.ts";

/** The folder of the project. */
export const ROOT = resolve(import.meta.dirname, "../..");

/**
 * Shell text in front of the commands of a page: it runs the script `chorus` in the thread that has the command line
 * loaded. npm and a process of its own take more than a second of processor time for each command. readme.test.ts runs
 * a command of a page with npm.
 */
export const WITHOUT_NPM = `npm() {
  case "$*" in
    "run chorus -- "*) shift 3 ;;
    "run --silent chorus -- "*) shift 4 ;;
    *) command npm "$@"; return ;;
  esac
  { printf '%s\\0' "$@"; printf '\\0'; env -0; } | curl -s --data-binary @- "${process.env[RUN_VARIABLE]}/shell" | {
    read -r code; cat; return "$code"
  }
}
`;

/** A fenced block of a page. */
export interface Block {
  language: string;
  text: string;
}

/** Returns the fenced blocks of a page in order, or only those of `language`. Joins continued command lines. */
export async function blocks(page: string, language?: string): Promise<Block[]> {
  const text = await readFile(join(ROOT, page), "utf8");
  return [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)]
    .map(([, language = "", body = ""]) => ({ language, text: body.trim().replaceAll(/ \\\n\s*/g, " ") }))
    .filter((block) => language === undefined || block.language === language);
}

/** Paths of all documentation pages. */
export async function pages(): Promise<string[]> {
  const names = await readdir(join(ROOT, "docs"), { recursive: true });
  return [
    "README.md",
    "CHANGELOG.md",
    ...names.filter((name) => name.endsWith(".md")).map((name) => join("docs", name)),
  ];
}
