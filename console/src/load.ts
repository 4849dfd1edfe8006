import { useEffect, useState } from "preact/hooks";

/** What a page knows of something that it loads. */
export interface Loaded<T> {
  /** What came last; stays while it is loaded again. */
  readonly data: T | undefined;
  /** Why the last attempt failed; undefined when it did not. */
  readonly error: unknown;
  readonly loading: boolean;
  reload(): void;
}

/** A page that nobody uses stops asking after this long, in milliseconds, so that its session can grow old. */
const ATTENTION_MS = 300_000;
let lastInput = Date.now();
for (const type of ["pointerdown", "keydown", "wheel"]) {
  addEventListener(type, () => (lastInput = Date.now()), { passive: true });
}

/**
 * Loads when the component appears and whenever `of` changes.
 * @param of what is loaded, as a text; another text is another thing, whose data do not show under the new name
 * @param everyMs loads again after this long while somebody looks; 0 never
 */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, of: string, everyMs = 0): Loaded<T> {
  const [state, setState] = useState<{ of: string; data: T | undefined; error: unknown; loading: boolean }>({
    of,
    data: undefined,
    error: undefined,
    loading: true,
  });
  const [turn, setTurn] = useState(0);

  // `load` is another function each time; `of` and `turn` say what it loads
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
      const isWatched = document.visibilityState === "visible" && Date.now() - lastInput < ATTENTION_MS;
      if (isWatched) void run();
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
