import type { ComponentChildren } from "preact";
import type { Loaded } from "../load.ts";
import { FailureNote } from "./failure-note.tsx";

interface Props<T> {
  of: Loaded<T>;
  /** What is being loaded, for the waiting line: "keys". */
  what: string;
  children: (data: T) => ComponentChildren;
}

/** Shows data when they are there, a quiet line until then, and a failure beside whatever was there before. */
export function Pending<T>({ of: { data, error, loading, reload }, what, children }: Props<T>) {
  return (
    <div class="pending" aria-busy={loading}>
      {error !== undefined && <FailureNote error={error} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && <p class="loading">Loading {what}…</p>}
    </div>
  );
}
