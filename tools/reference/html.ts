import hljs from "highlight.js";
import { Marked, type Token, type Tokens } from "marked";

/** Languages whose adjacent blocks are one example, which tabs show, with the names of the tabs. */
const TABS: Readonly<Record<string, string>> = { sh: "Shell", ts: "TypeScript", js: "JavaScript", python: "Python" };

/**
 * Turns Markdown into HTML: headings have the identifiers that GitHub gives them, code is coloured, and adjacent blocks
 * of code in several languages are one example with tabs.
 * @param resolve returns the address of a file that a link or an image names; undefined: it has none here
 */
export async function toHtml(markdown: string, resolve: (path: string) => string | undefined): Promise<string> {
  const marked = new Marked();
  marked.use({
    renderer: {
      heading({ tokens, depth }) {
        const text = this.parser.parseInline(tokens);
        return `<h${depth} id="${idOf(text)}">${text}</h${depth}>\n`;
      },
      code: (token) => codeOf(token),
      image({ href, text }) {
        const to = resolve(href);
        return to === undefined ? "" : `<img src="${to}" alt="${escapeText(text)}" loading="lazy">`;
      },
      link({ href, tokens }) {
        const text = this.parser.parseInline(tokens);
        if (/^(https?:|#)/.test(href)) return `<a href="${href}">${text}</a>`;
        const [path = "", hash] = href.split("#");
        const to = resolve(path);
        return to === undefined ? text : `<a href="${to}${hash === undefined ? "" : `#${hash}`}">${text}</a>`;
      },
      table(token) {
        return `<div class="table" tabindex="0">${tableOf(token, (tokens) => this.parser.parseInline(tokens))}</div>\n`;
      },
    },
  });
  return parts(marked.lexer(markdown))
    .map((part) => (part.length === 1 ? marked.parser([...part]) : tabsOf(part as Tokens.Code[])))
    .join("");
}

/** Tokens one by one, apart from adjacent blocks of code in different languages. */
function parts(tokens: readonly Token[]): Token[][] {
  const found: Token[][] = [];
  for (const token of tokens.filter(({ type }) => type !== "space")) {
    const last = found.at(-1)?.map(languageOf) ?? [];
    const language = languageOf(token);
    const isTab = language in TABS && !last.includes(language) && last.every((other) => other in TABS);
    if (last.length > 0 && isTab) found.at(-1)?.push(token);
    else found.push([token]);
  }
  return found;
}

/** The language of a block of code; empty for other tokens. */
function languageOf(token: Token): string {
  return token.type === "code" ? ((token as Tokens.Code).lang ?? "") : "";
}

/** An example in several languages. Without a script, all of them are visible. */
function tabsOf(blocks: readonly Tokens.Code[]): string {
  return `<div class="tabs">${blocks.map((block) => codeOf(block, TABS[block.lang ?? ""])).join("")}</div>\n`;
}

/** @param tab name of the tab that shows the block */
function codeOf({ text, lang = "" }: Tokens.Code, tab?: string): string {
  const html = hljs.getLanguage(lang) ? hljs.highlight(text, { language: lang }).value : escapeText(text);
  const name = tab === undefined ? "" : ` data-tab="${tab}"`;
  return `<figure class="code"${name}><pre tabindex="0"><code>${html}</code></pre></figure>\n`;
}

function tableOf({ header, rows }: Tokens.Table, inline: (tokens: Token[]) => string): string {
  const cells = (row: readonly Tokens.TableCell[], tag: string) => {
    // An empty cell in the head is no heading.
    const each = row.map(({ tokens }) => (tokens.length === 0 ? "<td></td>" : `<${tag}>${inline(tokens)}</${tag}>`));
    return `<tr>${each.join("")}</tr>`;
  };
  const body = rows.map((row) => cells(row, "td")).join("");
  return `<table><thead>${cells(header, "th")}</thead><tbody>${body}</tbody></table>`;
}

/** The identifier that GitHub gives a heading. */
export function idOf(html: string): string {
  return html
    .replaceAll(/<[^>]*>|&\w+;/g, "")
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(/\s/g, "-");
}

export function escapeText(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
