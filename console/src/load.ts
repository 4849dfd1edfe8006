import { useEffect, useState } from "preact/hooks";

/** The state of data that a page loads. */
export interface Loaded<T> {
  /** The result of the last load; kept while loading again. */
  readonly data: T | undefined;
  /** Error of the last attempt; undefined if it succeeded. */
  readonly error: unknown;
  readonly loading: boolean;
  reload(): void;
}

/** A page without input stops reloading after this time, in milliseconds, so that its session can expire. */
const ATTENTION_MS = 300_000;
let lastInput = Date.now();
for (const type of ["pointerdown", "keydown", "wheel"]) {
  addEventListener(type, () => (lastInput = Date.now()), { passive: true });
}

/** Whether a page may reload by itself: it is visible, and somebody uses it. */
export function isWatched(): boolean {
  return document.visibilityState === "visible" && Date.now() - lastInput < ATTENTION_MS;
}

/**
 * Loads when the component appears and whenever `of` changes.
 * @param of identifies what is loaded; when it changes, the old data are not shown any more
 * @param everyMs interval of reloading while the page is visible and in use; 0 for never
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, of: string, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ of: string; data: T | undefined; error: unknown; loading: boolean }>({
    of,
    data: undefined,
    error: undefined,
    loading: true,
  });
  const [turn, setTurn] = useState(0);

  // `load` is a new function at each render; `of` and `turn` determine what it loads
  useEffect(() => {
    const leaving = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const run = async () => {
      setState((before) => ({
        ...(before.of === of ? before : { data: undefined, error: undefined }),
        of,
        loading: true,
      }));
      const next = await load(leaving.signal).then(
        (data) => ({ of, data, error: undefined, loading: false }),
        (error: unknown) => ({ error }),
      );
      if (leaving.signal.aborted) return;
      setState((before) => ("data" in next ? next : { ...before, error: next.error, loading: false }));
      if (everyMs > 0) timer = setTimeout(tick, everyMs);
    };
    const tick = () => {
      if (isWatched()) void run();
      else timer = setTimeout(tick, everyMs);
    };
    void run();
    return () => {
      leaving.abort();
      clearTimeout(timer);
    };
  }, [of, turn, everyMs]);

  const shown = state.of === of ? state : { data: undefined, error: undefined, loading: true };
  return { data: shown.data, error: shown.error, loading: shown.loading, reload: () => setTurn((now) => now + 1) };
}
