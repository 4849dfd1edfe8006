import { useEffect, useRef, useState } from "preact/hooks";
import { timeText } from "../format.ts";
import { Empty } from "../parts/empty.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { type Filter, type Found, find } from "./find.ts";
import { GenerationTable } from "./generation-table.tsx";

const NOTHING: Found = { generations: [], next: "", searchedTo: undefined };

/** The requests that match a filter, loaded page by page. @param onFound called with each page */
export function GenerationList({ filter, onFound }: { filter: Filter; onFound: (found: Found) => void }) {
  const [found, setFound] = useState<Found>();
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(true);
  const leaving = useRef(new AbortController());

  const load = async (before: Found) => {
    const { signal } = leaving.current;
    setBusy(true);
    setError(undefined);
    try {
      const more = await find(filter, before.next, 100, signal);
      onFound(more);
      setFound({ ...more, generations: [...before.generations, ...more.generations] });
    } catch (failure) {
      if (!signal.aborted) setError(failure);
    }
    setBusy(false);
  };
  // Loads once: another filter creates another component.
  useEffect(() => {
    void load(NOTHING);
    return () => leaving.current.abort();
  }, []);

  const isEmpty = found?.generations.length === 0;
  return (
    <div aria-busy={busy}>
      {found && found.generations.length > 0 && <GenerationTable generations={found.generations} />}
      {isEmpty && !found.next && (
        <Empty title="No request matches.">
          <p>Choose a longer period or fewer filters.</p>
        </Empty>
      )}
      {error !== undefined && <FailureNote error={error} retry={() => load(found ?? NOTHING)} />}
      {found?.next && found.searchedTo && <p class="soft">Searched back to {timeText(found.searchedTo)}.</p>}
      <div class="buttons start">
        {found?.next && (
          <button type="button" disabled={busy} onClick={() => load(found)}>
            {isEmpty ? "Search further back" : "Show more"}
          </button>
        )}
        <button type="button" disabled={busy} onClick={() => load(NOTHING)}>
          {busy ? "Loading…" : "Refresh"}
        </button>
      </div>
    </div>
  );
}
