import type { ComponentChildren } from "preact";
import type { Loaded } from "../load.ts";
import { FailureNote } from "./failure-note.tsx";

interface Props<T> {
  of: Loaded<T>;
  /** What is being loaded, such as "keys", for the line "Loading keys…". */
  what: string;
  children: (data: T) => ComponentChildren;
}

/** Shows loaded data, or a line while they load. Shows an error together with the data of the last successful load. */
export function Pending<T>({ of: { data, error, loading, reload }, what, children }: Props<T>) {
  return (
    <div class="pending" aria-busy={loading}>
      {error !== undefined && <FailureNote error={error} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <p class="loading">Loading {what}…</p>}
    </div>
  );
}
