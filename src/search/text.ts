/** Elements of HTML, SVG and MathML's root. Other words in angle brackets, such as `List<String>`, are text. */
const ELEMENTS =
  "a|abbr|address|area|article|aside|audio|b|base|bdi|bdo|blockquote|body|br|button|canvas|caption|center|cite|code|col|" +
  "colgroup|data|datalist|dd|del|details|dfn|dialog|div|dl|dt|em|embed|fieldset|figcaption|figure|font|footer|form|frame|" +
  "frameset|h[1-6]|head|header|hgroup|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|main|map|mark|marquee|math|" +
  "menu|meta|meter|nav|noscript|object|ol|optgroup|option|output|p|param|picture|pre|progress|q|rp|rt|ruby|s|samp|script|" +
  "search|section|select|slot|small|source|span|strike|strong|style|sub|summary|sup|svg|table|tbody|td|template|textarea|" +
  "tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr";

// Each of these stops at the next angle bracket, or searches for the end of an element once, so that no text is slow to read.
const TAG = new RegExp(`</?(?:${ELEMENTS})(?:[\\s/][^<>]*)?>`, "gi");
/** Elements of a line, which may stand inside a word. */
const INLINE = /^<\/?(?:a|abbr|b|bdi|cite|code|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|u|var|wbr)\b/i;
const HIDDEN = /<!--|<(script|style)(?=[\s/>])/gi;

const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi;
/** The named ones that search backends send; others stay as they are. */
const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  hellip: "…",
  mdash: "—",
  ndash: "–",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  laquo: "«",
  raquo: "»",
  bull: "•",
  middot: "·",
  copy: "©",
  reg: "®",
  trade: "™",
  euro: "€",
  deg: "°",
};

/** Controls, and format characters that are not seen: direction overrides, zero-width and tag characters. Joiners spell words. */
const UNSEEN = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}]/gu;

/** Source characters that are read for one that is kept: markup can be several times as long as its text. */
const MARKUP = 8;

/**
 * A piece of a web page as one line of plain text: no HTML, no characters that are not seen, no line breaks.
 * @param max longest result, in UTF-16 units; what is cut off is marked with "…"
 */
export function plainText(html: string, max: number): string {
  const text = withoutHidden(html.slice(0, max * MARKUP))
    .replace(TAG, (tag) => (INLINE.test(tag) ? "" : " "))
    .replace(ENTITY, character)
    .replace(/\s+/g, " ")
    .replace(UNSEEN, "")
    .toWellFormed()
    // Once more: what was not seen may have stood between spaces.
    .replace(/ {2,}/g, " ")
    .trim();
  return text.length <= max ? text : `${clip(text, max - 1)}…`;
}

/** The beginning of a text, up to a limit in UTF-16 units, cut between words if one ends in its second half. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const space = text.lastIndexOf(" ", max);
  if (space > max / 2) return text.slice(0, space).trimEnd();
  // Never between the two halves of one character.
  const half = /[\ud800-\udbff]/.test(text.charAt(max - 1));
  return text.slice(0, half ? max - 1 : max);
}

/** Leaves out comments, scripts and styles together with what they contain. */
function withoutHidden(html: string): string {
  let kept = "";
  let at = 0;
  for (const match of html.matchAll(HIDDEN)) {
    if (match.index < at) continue;
    kept += `${html.slice(at, match.index)} `;
    const close = match[1] === undefined ? /-->/g : new RegExp(`</${match[1]}\\s*>`, "gi");
    close.lastIndex = match.index;
    at = close.exec(html) ? close.lastIndex : html.length;
  }
  return kept + html.slice(at);
}

function character(entity: string, decimal?: string, hex?: string, name?: string): string {
  if (name !== undefined) return NAMED[name.toLowerCase()] ?? entity;
  const code = decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number(decimal);
  return code <= 0x10ffff ? String.fromCodePoint(code) : "";
}
