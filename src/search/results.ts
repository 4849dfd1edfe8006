import { plainText } from "./text.ts";

/** A result as the backend sends it; missing fields are empty. */
export interface Found {
  title: string;
  url: string;
  /** Excerpt or summary of the page; may contain HTML. */
  text: string;
  published: string;
}

/** A page that was found. Its text is untrusted: data to quote, never instructions. */
export interface SearchResult {
  /** One line of plain text, never empty. */
  title: string;
  /** An http or https address, without tracking parameters. */
  url: string;
  /** One line of plain text from the page; empty if the backend gave none. */
  text: string;
  /** Day of publication, such as 2026-03-01, if the backend knows it. */
  published?: string;
}

const MAX_TITLE = 200;
const MAX_TEXT = 1_500;
const MAX_URL = 2_000;
/** Most results that are examined. SearXNG sends those of all its engines. */
const MAX_FOUND = 100;
/** Jaccard index from which two texts count as the same: syndicated copies differ in a date or a site's name. */
const NEAR_EQUAL = 0.8;

/**
 * Cleans the backend's results for a model, in their order: only http and https pages, text without HTML, no page and
 * no text twice.
 */
export function tidy(found: readonly Found[], count: number): SearchResult[] {
  const results: SearchResult[] = [];
  const pages = new Set<string>();
  const texts: Set<string>[] = [];
  for (const one of found.slice(0, MAX_FOUND)) {
    if (results.length === count) break;
    const url = webUrl(one.url);
    if (!url || pages.has(pageOf(url))) continue;
    const title = plainText(one.title, MAX_TITLE);
    const text = plainText(one.text, MAX_TEXT);
    const words = wordsOf(text);
    if ((title === "" && text === "") || texts.some((other) => nearEqual(words, other))) continue;
    pages.add(pageOf(url));
    texts.push(words);
    const published = dayOf(one.published);
    results.push({ title: title || url.hostname, url: url.href, text, ...(published ? { published } : {}) });
  }
  return results;
}

/** Parameters that identify a campaign or a click. */
const TRACKING = /^(?:utm_\w+|gclid|dclid|gbraid|wbraid|fbclid|msclkid|yclid|igshid|mc_[ce]id|_hs(?:enc|mi))$/i;

function webUrl(text: string): URL | undefined {
  if (text.length > MAX_URL || !URL.canParse(text)) return undefined;
  const url = new URL(text);
  // Rejects user names, because they can make one host look like another.
  if (!/^https?:$/.test(url.protocol) || url.username || url.password) return undefined;
  const tracking = [...url.searchParams.keys()].filter((name) => TRACKING.test(name));
  for (const name of tracking) url.searchParams.delete(name);
  return url.href.length > MAX_URL ? undefined : url;
}

/** Identifies a page: ignores scheme, `www.`, trailing slash, fragment and the order of parameters. */
function pageOf(url: URL): string {
  const parameters = new URLSearchParams(url.search);
  parameters.sort();
  return `${url.host.replace(/^www\./, "")}${url.pathname.replace(/\/+$/, "")}?${parameters}`;
}

/** Chinese and Japanese have no spaces between words, so each of their characters counts as a word. */
const WORD = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]|[\p{L}\p{M}\p{N}]+/gu;

function wordsOf(text: string): Set<string> {
  return new Set(text.toLowerCase().match(WORD));
}

/** Whether the Jaccard index of two texts' words is high. A text without words is not equal to any text. */
function nearEqual(a: ReadonlySet<string>, b: ReadonlySet<string>): boolean {
  const common = a.intersection(b).size;
  return common > 0 && common >= NEAR_EQUAL * (a.size + b.size - common);
}

/** The day of an ISO date as written, or of an RFC 7231 date in UTC; undefined for any other text. */
function dayOf(text: string): string | undefined {
  if (text.length > 64) return undefined;
  const written = /^\d{4}-\d\d-\d\d(?=$|[T ])/.exec(text)?.[0] ?? /^\w{3}, .* \d{4} .*GMT$/.exec(text)?.[0];
  const time = written === undefined ? Number.NaN : Date.parse(written);
  return Number.isNaN(time) ? undefined : new Date(time).toISOString().slice(0, 10);
}
