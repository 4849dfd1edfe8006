import MiniSearch from "minisearch";
import { idOf } from "./html.ts";
import type { Page } from "./pages.ts";

/** A section of a page, as the search finds it. */
interface Section {
  readonly id: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
  /** What a result shows of it. */
  readonly start: string;
}

/** The script of the pages reads them with the index. */
const OPTIONS = { fields: ["page", "heading", "text"], storeFields: ["page", "heading", "start"] };

/** Most characters that a result shows. */
const MAX_SHOWN = 160;

/**
 * The index of all sections as JSON, with its options. It has the address, the title, the heading and the beginning of
 * each.
 */
export function searchIndex(pages: readonly Page[]): string {
  const index = new MiniSearch(OPTIONS);
  index.addAll(pages.flatMap(sectionsOf));
  return JSON.stringify({ options: OPTIONS, index });
}

function sectionsOf({ path, title, text }: Page): Section[] {
  const ids = new Set<string>();
  return splitAtHeadings(text).flatMap(({ heading = title, prose, code }) => {
    const hash = heading === title ? "" : `#${idOf(plain(heading))}`;
    const id = `/docs/${path}${hash}`;
    if (ids.has(id)) return [];
    ids.add(id);
    const start = plain(prose).slice(0, MAX_SHOWN);
    return [{ id, page: plain(title), heading: plain(heading), text: `${plain(prose)} ${code}`, start }];
  });
}

interface Part {
  readonly heading?: string;
  prose: string;
  code: string;
}

/** The text below each heading, and the code in it. A `#` in code is no heading. */
function splitAtHeadings(markdown: string): Part[] {
  const parts: Part[] = [{ prose: "", code: "" }];
  let isCode = false;
  for (const line of markdown.split("\n")) {
    const heading = isCode ? undefined : /^#{1,3} (.+)$/.exec(line)?.[1];
    const part = parts.at(-1);
    if (heading !== undefined) parts.push({ heading, prose: "", code: "" });
    else if (line.startsWith("```")) isCode = !isCode;
    else if (part) part[isCode ? "code" : "prose"] += `${line}\n`;
  }
  return parts.filter(({ heading, prose, code }) => heading !== undefined || `${prose}${code}`.trim() !== "");
}

/** Markdown as text: links become their words. */
function plain(markdown: string): string {
  return markdown
    .replaceAll(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replaceAll(/^\| ?[-: |]+$|^\s*- |[`*|]/gm, " ")
    .replaceAll(/\s+/g, " ")
    .trim();
}
