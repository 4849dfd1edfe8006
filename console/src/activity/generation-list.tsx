import { Radio, RefreshCw } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Generation } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { timeText } from "../format.ts";
import { isWatched } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { Empty } from "../parts/empty.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Icon } from "../parts/icon.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { go, narrow, pathOf } from "../route.ts";
import { type Filter, type Found, find } from "./find.ts";
import { FindRun } from "./find-run.tsx";
import { GenerationDrawer } from "./generation-drawer.tsx";
import { GenerationTable } from "./generation-table.tsx";
import { RunningList } from "./running-list.tsx";

const NOTHING: Found = { generations: [], next: "", searchedTo: undefined };
const PAGE = 100;

/** Interval at which new requests are added, and the most that are in the list then. */
const LIVE_MS = 2000;
const MOST_LIVE = 1000;

interface Props {
  filter: Filter;
  /** Identifier of the request whose drawer is open; empty for none. */
  opened: string;
  /** Called with each page. */
  onFound: (found: Found) => void;
}

/** The requests that match a filter, loaded page by page, or as they end. */
export function GenerationList({ filter, opened, onFound }: Props) {
  const { found, failed, busy, load, add } = useGenerations(filter, onFound);
  const [isLive, setIsLive] = useState(false);
  useTail(isLive, add);
  const isEmpty = found?.generations.length === 0;
  const listed = found?.generations.find(({ id }) => id === opened);
  return (
    <div class="pending" aria-busy={busy && !isLive}>
      <div class="toolbar">
        <FindRun open={(id) => go(pathOf(`runs/${id}`))} />
        <button type="button" class="small" disabled={busy} onClick={() => load(NOTHING)}>
          <Icon of={RefreshCw} />
          Refresh
        </button>
        {filter.period.to === undefined && (
          <button type="button" class="small" aria-pressed={isLive} onClick={() => setIsLive(!isLive)}>
            <Icon of={Radio} />
            {isLive ? "Stop live" : "Live"}
          </button>
        )}
        {isLive && <span role="status">New requests appear at the top.</span>}
      </div>
      {failed && <FailureNote error={failed.error} retry={failed.again} />}
      <RunningList filter={filter} />
      <Card flush>
        {!found && !failed && <Skeleton tall="30rem" />}
        {found && found.generations.length > 0 && (
          <GenerationTable generations={found.generations} opened={opened} open={({ id }) => narrow({ request: id })} />
        )}
        {isEmpty && !found.next && (
          <Empty title="No request matches.">
            <p>Choose a longer period or fewer filters.</p>
          </Empty>
        )}
        {found?.next && (
          <div class="table-foot">
            <button type="button" class="small" disabled={busy} onClick={() => load(found)}>
              {isEmpty ? "Search further back" : "Show more"}
            </button>
            {found.searchedTo && <span>Searched back to {timeText(found.searchedTo)}.</span>}
          </div>
        )}
      </Card>
      {found && opened !== "" && (
        <GenerationDrawer id={opened} listed={listed} close={() => narrow({ request: undefined })} />
      )}
    </div>
  );
}

function useGenerations(filter: Filter, onFound: (found: Found) => void) {
  const [found, setFound] = useState<Found>();
  const [failed, setFailed] = useState<{ error: unknown; again: () => void }>();
  const [busy, setBusy] = useState(true);
  const leaving = useRef(new AbortController());

  const run = async (token: string, merge: (more: Found, before: Found | undefined) => Found) => {
    const { signal } = leaving.current;
    setBusy(true);
    setFailed(undefined);
    try {
      const more = await find(filter, token, PAGE, signal);
      onFound(more);
      setFound((before) => merge(more, before));
    } catch (error) {
      if (!signal.aborted) setFailed({ error, again: () => void run(token, merge) });
    }
    setBusy(false);
  };
  const load = (before: Found) =>
    run(before.next, (more) => ({ ...more, generations: [...before.generations, ...more.generations] }));
  // Loads once: another filter creates another component.
  useEffect(() => {
    void load(NOTHING);
    return () => leaving.current.abort();
  }, []);
  return { found, failed, busy, load, add: () => run("", withNewer) };
}

/** Adds the requests that are not listed yet. */
function withNewer(newest: Found, before: Found = NOTHING): Found {
  // A search that reached no match yet has a next page, which goes on to what is listed already.
  if (newest.generations.length === 0 && before.generations.length > 0) return before;
  const known = new Set(before.generations.map(({ id }) => id));
  const fresh: Generation[] = newest.generations.filter(({ id }) => !known.has(id));
  const generations = [...fresh, ...before.generations];
  // More have ended than a page holds, or the list would lose its end, from which it goes on with "Show more": it
  // continues from the new page.
  const isNew = fresh.length === newest.generations.length || generations.length > MOST_LIVE;
  return isNew && newest.next ? newest : { ...before, generations };
}

/** Calls `add` again and again while the page is visible and in use. */
function useTail(isLive: boolean, add: () => Promise<void>): void {
  const latest = useRef(add);
  latest.current = add;
  useEffect(() => {
    if (!isLive) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let isOver = false;
    const tick = async () => {
      if (isWatched()) await latest.current();
      if (!isOver) timer = setTimeout(tick, LIVE_MS);
    };
    void tick();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [isLive]);
}
