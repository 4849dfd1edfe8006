import { readdir, readFile } from "node:fs/promises";
import { marked } from "marked";

const DOCS = new URL("../../docs/", import.meta.url);

/** A guide as a page of HTML. */
export interface Guide {
  /** Name of its file in `docs`, without the extension. */
  readonly name: string;
  readonly title: string;
  readonly html: string;
}

/** Reads the guides of `docs`, by title. Links between guides lead to their pages; links to other files are text. */
export async function readGuides(): Promise<Guide[]> {
  const files = (await readdir(DOCS)).filter((file) => file.endsWith(".md"));
  const known = new Set(files.map((file) => file.slice(0, -3)));
  const guides = await Promise.all(
    files.map(async (file) => {
      const text = await readFile(new URL(file, DOCS), "utf8");
      const name = file.slice(0, -3);
      return { name, title: /^# (.+)$/m.exec(text)?.[1] ?? name, html: await toHtml(text, known) };
    }),
  );
  return guides.toSorted((a, b) => a.title.localeCompare(b.title));
}

async function toHtml(markdown: string, known: ReadonlySet<string>): Promise<string> {
  const html = await marked.parse(markdown);
  return html
    .replaceAll(/<h(\d)>(.*?)<\/h\1>/g, (_, level: string, text: string) => {
      const id = text
        .replaceAll(/<[^>]*>|&\w+;/g, "")
        .toLowerCase()
        .replaceAll(/[^\w\s-]/g, "")
        .replaceAll(/\s/g, "-");
      return `<h${level} id="${id}">${text}</h${level}>`;
    })
    .replaceAll(/<img [^>]*>/g, "")
    .replaceAll(
      /<a href="(?!https?:|#)([^"#]*)(#[^"]*)?"[^>]*>(.*?)<\/a>/gs,
      (_, path: string, hash = "", text: string) => {
        const name = path.replace(/\.md$/, "");
        return known.has(name) ? `<a href="${name}${hash}">${text}</a>` : text;
      },
    );
}

/** A page of a guide, or of the list of guides. */
export function pageOf(title: string, body: string): string {
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${title} · Chorus</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="/docs/guides.css">
  </head>
  <body class="guide">
    <nav><a href="/docs">API reference</a> <a href="/docs/guides">Guides</a> <a href="/console">Console</a></nav>
    <main>
${body}
    </main>
  </body>
</html>
`;
}
