import type { ComponentChildren } from "preact";
import type { Loaded } from "../load.ts";
import { FailureNote } from "./failure-note.tsx";
import { Skeleton } from "./skeleton.tsx";

interface Props<T> {
  of: Loaded<T>;
  /** What is being loaded, such as "keys", for screen readers. */
  what: string;
  /** Replaces the data while they load. */
  skeleton?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

/** Shows loaded data, or a skeleton while they load. Shows an error together with the data of the last success. */
export function Pending<T>({ of: { data, error, loading, reload }, what, skeleton, children }: Props<T>) {
  return (
    <div class="pending" aria-busy={loading}>
      {error !== undefined && <FailureNote error={error} retry={reload} />}
      {data !== undefined && children(data)}
      {data === undefined && error === undefined && (
        <>
          <p class="hidden">Loading {what}…</p>
          {skeleton ?? <Skeleton lines={8} />}
        </>
      )}
    </div>
  );
}
