/**
 * Elements of HTML, and the root elements of SVG and MathML. Other words in angle brackets, such as `List<String>`,
 * are text.
 */
const ELEMENTS =
  "a|abbr|address|area|article|aside|audio|b|base|bdi|bdo|blockquote|body|br|button|canvas|caption|center|cite|" +
  "code|col|colgroup|data|datalist|dd|del|details|dfn|dialog|div|dl|dt|em|embed|fieldset|figcaption|figure|font|" +
  "footer|form|frame|frameset|h[1-6]|head|header|hgroup|hr|html|i|iframe|img|input|ins|kbd|label|legend|li|link|" +
  "main|map|mark|marquee|math|menu|meta|meter|nav|noscript|object|ol|optgroup|option|output|p|param|picture|pre|" +
  "progress|q|rp|rt|ruby|s|samp|script|search|section|select|slot|small|source|span|strike|strong|style|sub|" +
  "summary|sup|svg|table|tbody|td|template|textarea|tfoot|th|thead|time|title|tr|track|tt|u|ul|var|video|wbr";

// To run in linear time, each pattern stops at the next angle bracket, or searches for the end of an element only once.
const TAG = new RegExp(`</?(?:${ELEMENTS})(?:[\\s/][^<>]*)?>`, "gi");
/** Inline elements, which can occur inside a word. */
const INLINE = /^<\/?(?:a|abbr|b|bdi|cite|code|em|font|i|ins|kbd|mark|q|s|small|span|strong|sub|sup|u|var|wbr)\b/i;
const HIDDEN = /<!--|<(script|style)(?=[\s/>])/gi;

const ENTITY = /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,6}));/gi;
/** The named entities that search backends send; others stay unchanged. */
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

/**
 * Invisible characters: controls, direction overrides, zero-width and tag characters. Joiners are kept, because some
 * scripts need them.
 */
const INVISIBLE = /(?![\u200c\u200d])[\p{Cc}\p{Cf}\p{Co}]/gu;

/**
 * Characters of HTML that are read for each character of the result, because markup can be several times as long as
 * its text.
 */
const MARKUP = 8;

/**
 * Converts a piece of a web page to one line of plain text, without HTML, invisible characters and line breaks.
 * @param max longest result, in UTF-16 units; a shortened text ends with "…"
 */
export function plainText(html: string, max: number): string {
  const text = withoutHidden(html.slice(0, max * MARKUP))
    .replace(TAG, (tag) => (INLINE.test(tag) ? "" : " "))
    .replace(ENTITY, character)
    .replace(/\s+/g, " ")
    .replace(INVISIBLE, "")
    .toWellFormed()
    // Removing an invisible character between two spaces leaves both.
    .replace(/ {2,}/g, " ")
    .trim();
  return text.length <= max ? text : `${clip(text, max - 1)}…`;
}

/** Shortens a text to `max` UTF-16 units, at a space if there is one in the second half. */
export function clip(text: string, max: number): string {
  if (text.length <= max) return text;
  const space = text.lastIndexOf(" ", max);
  if (space > max / 2) return text.slice(0, space).trimEnd();
  // Does not split a surrogate pair.
  const half = /[\ud800-\udbff]/.test(text.charAt(max - 1));
  return text.slice(0, half ? max - 1 : max);
}

/** Removes comments, scripts and styles with their content. */
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
