import { useEffect, useState } from "preact/hooks";

const BASE = "/console/";
const MOVED = "chorus:moved";

export interface Route {
  /** First part of the path below /console/: empty for the overview. */
  readonly page: string;
  /** Period, key and filters of the page. */
  readonly query: URLSearchParams;
}

/** The address as a route. The component renders again when it changes. */
export function useRoute(): Route {
  const [href, setHref] = useState(location.href);
  useEffect(() => {
    const read = () => setHref(location.href);
    addEventListener("popstate", read);
    addEventListener(MOVED, read);
    // An effect runs some time after the first render. The address may have changed meanwhile.
    read();
    return () => {
      removeEventListener("popstate", read);
      removeEventListener(MOVED, read);
    };
  }, []);
  const url = new URL(href);
  return { page: url.pathname.slice(BASE.length).replace(/\/+$/, ""), query: url.searchParams };
}

/** Address of a page, without undefined or empty query parameters. */
export function pathOf(page: string, query: Record<string, string | undefined> = {}, hash = ""): string {
  const filled = Object.entries(query).filter((entry): entry is [string, string] => !!entry[1]);
  const text = new URLSearchParams(filled).toString();
  return `${BASE}${page}${text && `?${text}`}${hash && `#${hash}`}`;
}

/** Navigates to an address of the console. */
export function go(path: string): void {
  history.pushState(null, "", path);
  dispatchEvent(new Event(MOVED));
}

/** Replaces a part of the address of this page, which then is that of another page, and no entry in the history. */
export function rename(part: string, by: string): void {
  history.replaceState(null, "", location.href.replace(part, by));
  dispatchEvent(new Event(MOVED));
}

/** Keeps a value with this entry of the history, until its address changes. */
export function keep(name: string, value: unknown): void {
  history.replaceState({ ...history.state, [name]: value }, "");
}

/** The value that was kept with this entry of the history. */
export function kept(name: string): unknown {
  return history.state?.[name];
}

/** Changes query parameters of this page. Replaces the history entry, so that going back leads to the previous page. */
export function narrow(changes: Record<string, string | undefined>): void {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value) url.searchParams.set(name, value);
    else url.searchParams.delete(name);
  }
  history.replaceState(null, "", url);
  dispatchEvent(new Event(MOVED));
}
