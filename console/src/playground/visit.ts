import { currentPerson, currentWorkspace } from "../session/session.ts";
import type { Draft } from "./draft.ts";
import type { Run } from "./run.ts";

/** A run on the page, with its request. */
export interface Shown {
  /** Identifies the run among those on the page. */
  readonly title: string;
  readonly run: Run;
  readonly draft: Draft;
}

/** A request that has ended, with its answers. */
export interface Past {
  readonly at: Date;
  readonly draft: Draft;
  readonly compares: boolean;
  readonly shown: readonly Shown[];
}

/** What a person has done in the playground since the console was opened. It is kept in memory only. */
export interface Visit {
  /** Workspace and person. */
  readonly of: string;
  /** Undefined: nothing was written yet. */
  draft: Draft | undefined;
  compares: boolean;
  shown: readonly Shown[];
  /** The newest first. */
  past: readonly Past[];
  runs: number;
  tokens: number;
  credits: number;
  /** Stops the requests that run. */
  running: AbortController | undefined;
  /** Draws the page again, if it is open. */
  changed: () => void;
}

let kept: Visit | undefined;

/** The visit of the person who is signed in. Requests go on while another page is open. */
export function keptVisit(): Visit {
  const of = `${currentWorkspace()} ${currentPerson() ?? ""}`;
  if (kept?.of === of) return kept;
  forgetVisit();
  kept = {
    of,
    ...{ draft: undefined, compares: false, shown: [], past: [] },
    ...{ runs: 0, tokens: 0, credits: 0, running: undefined },
    changed: () => undefined,
  };
  return kept;
}

/** Stops what runs, and forgets the visit: the person signs out. */
export function forgetVisit(): void {
  kept?.running?.abort();
  kept = undefined;
}
