import { readdir, readFile } from "node:fs/promises";
import { posix } from "node:path";
import { toHtml } from "./html.ts";

const ROOT = new URL("../../", import.meta.url);

/** A file of documentation as a page of HTML. */
export interface Page {
  /** Path below `/docs`, such as `guides/alerts`. */
  readonly path: string;
  readonly title: string;
  readonly html: string;
  /** The Markdown that it is made of. */
  readonly text: string;
}

/** A part of the navigation. */
export interface Group {
  readonly title: string;
  readonly pages: readonly Page[];
}

/** Folders of pages below `docs`, and the paths where their pages are. */
const FOLDERS: readonly (readonly [folder: string, path: string])[] = [
  ["docs", "guides"],
  ["docs/reference", "reference"],
  ["docs/decisions", "decisions"],
];

/** Reads all pages. Links between them lead to their pages, and links to other files become text. */
export async function readPages(): Promise<Page[]> {
  const files = new Map<string, string>([["CHANGELOG.md", "changes"]]);
  for (const [folder, path] of FOLDERS) {
    const names = (await readdir(new URL(`${folder}/`, ROOT))).filter((name) => name.endsWith(".md"));
    for (const name of names) files.set(`${folder}/${name}`, `${path}/${name.slice(0, -3).replace("README", "index")}`);
  }
  const pages = [...files].map(async ([file, path]): Promise<Page> => {
    const text = await readFile(new URL(file, ROOT), "utf8");
    const html = await toHtml(text, (link) => {
      const to = posix.normalize(posix.join(posix.dirname(file), link));
      const image = /^docs\/(images\/.+)$/.exec(to)?.[1];
      const found = image ?? files.get(to)?.replace(/\/index$/, "");
      return found === undefined ? undefined : `/docs/${found}`;
    });
    return { path: path.replace(/\/index$/, ""), title: /^# (.+)$/m.exec(text)?.[1] ?? path, html, text };
  });
  return await Promise.all(pages);
}

/** The lists of pages in the README, such as "Call it", and the pages of the other folders. */
export async function readGroups(pages: readonly Page[]): Promise<Group[]> {
  const readme = await readFile(new URL("README.md", ROOT), "utf8");
  const list = /^## Where to go on\n([\s\S]*?)(?=^\S+:|^## |^Licence)/m.exec(readme)?.[1] ?? "";
  const groups = [...list.matchAll(/^- (\w+ it): ([\s\S]*?)(?=^- |$(?![\s\S]))/gm)].map(
    ([, title = "", text = ""]) => ({
      title,
      pages: [...text.matchAll(/\(docs\/(\w[\w-]*)\.md\)/g)].flatMap(([, name]) =>
        pages.filter(({ path }) => path === `guides/${name}`),
      ),
    }),
  );
  const known = new Set(groups.flatMap((group) => group.pages));
  const rest = pages.filter((page) => !known.has(page));
  const below = (folder: string) =>
    rest.filter(({ path }) => path.startsWith(`${folder}/`)).toSorted((a, b) => a.title.localeCompare(b.title));
  return [
    ...groups.filter((group) => group.pages.length > 0),
    { title: "More guides", pages: below("guides").concat(rest.filter(({ path }) => path === "changes")) },
    { title: "Reference", pages: below("reference") },
    { title: "Decisions", pages: rest.filter(({ path }) => path === "decisions").concat(below("decisions")) },
  ].filter((group) => group.pages.length > 0);
}
