import DOMPurify from "dompurify";
import { Marked } from "marked";
import { useMemo } from "preact/hooks";
import { directionOf } from "../direction.ts";
import { escapeHtml, highlight } from "./highlight.ts";

const ALLOWED = {
  ALLOWED_TAGS: [
    ...["p", "br", "hr", "strong", "em", "del", "code", "pre", "span", "blockquote", "a", "ul", "ol", "li"],
    ...["h3", "h4", "h5", "h6", "table", "thead", "tbody", "tr", "th", "td"],
  ],
  ALLOWED_ATTR: ["href", "class", "start", "align", "rel", "target"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
};

const marked = new Marked({
  gfm: true,
  renderer: {
    // The page has headings of two levels above the answer.
    heading({ tokens, depth }) {
      const level = Math.min(6, depth + 2);
      return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>`;
    },
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    code: ({ text }) => `<pre><code>${highlight(text)}</code></pre>`,
    // HTML of a model is text. An image would be a request to another host.
    html: ({ text }) => escapeHtml(text),
    image: ({ href, text }) => `<a href="${escapeHtml(href)}">${escapeHtml(text || href)}</a>`,
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  // Each block of the answer has the direction of its first letter. Code is always written from left to right.
  if (node.parentNode?.nodeName === "BODY" && node.tagName !== "PRE")
    node.setAttribute("dir", directionOf(node.textContent ?? ""));
  if (node.tagName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer nofollow");
  }
});

/** An answer of a model as formatted text. Only the listed elements pass; everything else is shown as text. */
export function Markdown({ text }: { text: string }) {
  const html = useMemo(() => DOMPurify.sanitize(marked.parse(text, { async: false }), ALLOWED), [text]);
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}
