import { useState } from "preact/hooks";
import { keep, kept } from "../route.ts";

export interface Pager {
  /** Token of the page that is shown; empty for the first. */
  readonly token: string;
  /** Number of the page, from 1. */
  readonly number: number;
  next(token: string): void;
  back(): void;
}

/**
 * Pagination by token. Going back in the browser leads to the same page of the list.
 * @param of identifies the list; when it changes, the pager returns to the first page
 */
export function usePager(of: string): Pager {
  const [state, setState] = useState<{ of: string; tokens: string[] }>(() => ({ of, tokens: tokensOf(kept(of)) }));
  const tokens = state.of === of ? state.tokens : [];
  const show = (tokens: string[]) => {
    setState({ of, tokens });
    keep(of, tokens);
  };
  return {
    token: tokens.at(-1) ?? "",
    number: tokens.length + 1,
    next: (token) => show([...tokens, token]),
    back: () => show(tokens.slice(0, -1)),
  };
}

function tokensOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((token) => typeof token === "string") : [];
}

interface Props {
  pager: Pager;
  /** Token of the next page; empty on the last one. */
  next: string;
  /** The buttons: lists by time have the newest entries first. */
  words?: readonly [back: string, next: string];
}

export function PagerButtons({ pager, next, words: [back, more] = ["Newer", "Older"] }: Props) {
  if (pager.number === 1 && !next) return null;
  return (
    <nav class="pager table-foot" aria-label="Pages of the list">
      <button type="button" class="small" disabled={pager.number === 1} onClick={pager.back}>
        {back}
      </button>
      <span>Page {pager.number}</span>
      <button type="button" class="small" disabled={!next} onClick={() => pager.next(next)}>
        {more}
      </button>
    </nav>
  );
}
