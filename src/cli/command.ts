import type { DescEnum, DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import { MetricsGroupBy } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf, words } from "../contract/json-names.ts";
import { messageJson, printJson } from "./print.ts";
import { CliError, findTarget, type GlobalOptions } from "./target.ts";

export const OWN_WORKSPACE = "name or identifier; an owner can omit it";

/** Largest page of a list. */
const MAX_PAGE = 1_000;

/** Whether `--json` is set. */
export function wantsJson(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json ?? false;
}

/** Prints a response: with `--json` as one JSON document, else as `print` does. */
export function show<D extends DescMessage>(
  command: Command,
  desc: D,
  message: MessageShape<D>,
  print: (message: MessageShape<D>) => void,
): void {
  if (wantsJson(command)) printJson(messageJson(desc, message));
  else print(message);
}

/**
 * Prints a link to the console: its address where that is known, else its path with what to put in front.
 * @param facts further members of the JSON document
 */
export async function showLink(command: Command, path: string, facts: object): Promise<void> {
  const { restUrl: url } = await findTarget(command);
  if (wantsJson(command)) printJson({ ...facts, path, ...(url ? { url: url + path } : {}) });
  else if (url) console.log(url + path);
  else console.log(`${path}\n\nPut the public address of the service in front, such as https://chorus.example.com`);
}

/** Reads a list in pages. @param member name of the list in a page. @param most most entries to read */
export async function readPages<K extends string, Page extends { nextPageToken: string } & Record<K, unknown[]>>(
  member: K,
  read: (page: { pageSize: number; pageToken: string }) => Promise<Page>,
  most = Number.POSITIVE_INFINITY,
): Promise<{ entries: Page[K][number][]; hasMore: boolean }> {
  const entries: Page[K][number][] = [];
  let pageToken = "";
  do {
    const page = await read({ pageSize: Math.min(MAX_PAGE, most - entries.length), pageToken });
    entries.push(...page[member]);
    pageToken = page.nextPageToken;
  } while (pageToken !== "" && entries.length < most);
  return { entries, hasMore: pageToken !== "" };
}

/** Reads `--limit`. @throws CliError */
export function limitOf(text: string): number {
  const limit = /^\d{1,9}$/.test(text) ? Number(text) : 0;
  if (limit < 1) throw new CliError(`--limit must be a whole number from 1, but is "${text}".`);
  return limit;
}

/** Reads a word of an enum. @throws CliError with the words */
export function enumOf(option: string, desc: DescEnum, text: string): number {
  const number = numberOf(desc, text);
  if (number) return number;
  throw new CliError(`${option} must be one of ${[...words(desc).values()].join(", ")}, but is "${text}".`);
}

/** Collects the values of an option that may be given several times. */
export function repeated(value: string, previous: string[] = []): string[] {
  return [...previous, value];
}

/** Reads `--tag name=value` options. @throws CliError */
export function parseTags(tags: readonly string[] = []): Record<string, string> {
  const pairs = tags.map((text): [string, string] => {
    const at = text.indexOf("=");
    if (at < 1) throw new CliError(`--tag must be a name and a value such as team=search, but is "${text}".`);
    return [text.slice(0, at), text.slice(at + 1)];
  });
  const found = new Map(pairs);
  if (found.size < pairs.length) throw new CliError("--tag names a tag twice. Name each tag once.");
  return Object.fromEntries(found);
}

/** Reads `--by key|user|tag:NAME`. @throws CliError */
export function groupBy(by: string): { groupBy: MetricsGroupBy; groupTag?: string } {
  if (by === "key") return { groupBy: MetricsGroupBy.KEY };
  if (by === "user") return { groupBy: MetricsGroupBy.USER };
  if (by.startsWith("tag:")) return { groupBy: MetricsGroupBy.TAG, groupTag: by.slice(4) };
  throw new CliError(`--by must be key, user or tag:NAME, but is "${by}".`);
}
