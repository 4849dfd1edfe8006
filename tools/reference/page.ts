import { escapeText, idOf } from "./html.ts";
import type { Group, Page } from "./pages.ts";

/**
 * A page of the documentation: navigation, content and the headings of the content.
 */
export function pageOf({ path, title, html }: Page, groups: readonly Group[]): string {
  const plain = escapeText(title.replaceAll("`", ""));
  return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>${plain} · Chorus</title>
    <link rel="icon" href="data:,">
    <link rel="stylesheet" href="/docs/tokens.css">
    <link rel="stylesheet" href="/docs/site.css">
    <link rel="stylesheet" href="/docs/code.css">
    <script type="module" src="/docs/site.js"></script>
  </head>
  <body class="docs">
    <a class="skip" href="#content">Skip to the content</a>
    <header>
      <a class="brand" href="/docs/guides">Chorus</a>
      <search hidden>
        <input type="search" id="search" aria-label="Search the documentation" placeholder="Search (press /)"
          autocomplete="off" aria-controls="results">
        <ul id="results" aria-label="Results" hidden></ul>
        <p id="found" role="status"></p>
      </search>
      <nav aria-label="Chorus"><a href="/docs">API reference</a> <a href="/console">Console</a></nav>
    </header>
    <details class="menu">
      <summary>All pages</summary>
      ${navigation(groups, path)}
    </details>
    <main id="content">
${html}
    </main>
    ${contents(html)}
  </body>
</html>
`;
}

/** All groups and their pages. The decisions are closed unless the page is one of them. */
function navigation(groups: readonly Group[], current: string): string {
  const items = groups.map(({ title, pages }) => {
    const isOpen = title !== "Decisions" || pages.some(({ path }) => path === current);
    return `<details${isOpen ? " open" : ""}><summary>${title}</summary>${linksTo(pages, current)}</details>`;
  });
  return `<nav aria-label="Pages">${items.join("\n")}</nav>`;
}

function linksTo(pages: readonly Page[], current?: string): string {
  const links = pages.map(({ path, title }) => {
    const mark = path === current ? ' aria-current="page"' : "";
    return `<li><a href="/docs/${path}"${mark}>${escapeText(title.replaceAll("`", ""))}</a></li>`;
  });
  return `<ul>${links.join("")}</ul>`;
}

/** The headings of the second level, if there are several. */
function contents(html: string): string {
  const headings = [...html.matchAll(/<h2 id="([^"]*)">(.*?)<\/h2>/g)];
  if (headings.length < 2) return "";
  const links = headings.map(
    ([, id, text = ""]) => `<li><a href="#${id}">${text.replaceAll(/<\/?a\b[^>]*>/g, "")}</a></li>`,
  );
  return `<nav class="contents" aria-label="On this page"><p>On this page</p><ul>${links.join("")}</ul></nav>`;
}

/** The page that lists all others. */
export function listOf(groups: readonly Group[]): Page {
  const parts = groups.map(({ title, pages }) => {
    return `<section><h2 id="${idOf(title)}">${title}</h2>${linksTo(pages)}</section>`;
  });
  const html = `<h1 id="guides">Guides</h1>\n<div class="groups">${parts.join("")}</div>`;
  return { path: "guides", title: "Guides", html, text: "" };
}
