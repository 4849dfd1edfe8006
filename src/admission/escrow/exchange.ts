import type { Refusal } from "./refusal.ts";

/**
 * Amounts of what a workspace can run out of. `Infinity` (null in JSON): the workspace has no such limit.
 *
 * Spend limits are part of `credit`: what can be reserved is the granted credit, and of the purchased credit what the
 * spend limits of day, week and month leave. Requests, input and output stand for minute, day and month together: one
 * request is reserved in all three. So what is reserved ends with the minute.
 */
export interface Headroom {
  /** Micro-credits. */
  credit: number;
  /** Concurrent requests. */
  running: number;
  requests: number;
  input: number;
  /** Output tokens. A request needs more than 0, because its answer is counted when it ends. */
  output: number;
}

/** A request that does not fit the replica's own headroom. */
export interface Ask {
  requestId: string;
  /** Highest possible charge, in micro-credits. */
  hold: number;
  input: number;
  /** Of a request with an idempotency key: hashes of the key and of the request, in hex. */
  key?: string;
  body?: string;
  /** Its subjects that can have caps, which the database knows; see `caps_of.sql`. */
  subjects?: readonly string[];
}

export interface Post {
  requestId: string;
  /** Micro-credits, at most the hold. */
  charge: number;
  output: number;
  row: object;
  /** Subjects whose headroom on this replica contains the charge, because the request was admitted here. */
  shared?: readonly string[] | undefined;
  /** Set on a settlement of the journal whose grant may have ended: the replica that admitted the request. */
  admittedBy?: string;
}

/** A request that was admitted and has no end, because its caller was refused: its key and its caps are free. */
export interface Freed {
  requestId: string;
  key?: string | undefined;
}

/** What an item says of the headroom that a subject has of its caps on the replica; see `Share`. */
export interface SubjectReport {
  subject: string;
  /** Admitted here since the previous item. */
  used: { requests: number; input: number };
  /** For running requests and settlements of a later item. */
  held: { credit: number; running: number };
  /** Nothing but `held` stays reserved. */
  returns?: boolean;
  /** More headroom, for `n` requests of this size. `minute`: it adds to what is kept of this minute. */
  spare?: { n: number; credit: number; input: number; output: number; minute?: number };
}

/** Headroom that was reserved for a subject. It ends after `msLeft`, also where it has no cap. */
export interface SubjectGrant {
  subject: string;
  extra: Headroom;
  msLeft: number;
}

/**
 * How an item is executed. `append`: nothing is asked, returned or closed, so the posts are appended to the log. The
 * grant stays as it is: what it has beyond `held` and the charges is what the replica keeps. `exchange`: the grant
 * changes, for which the workspace is locked.
 */
export type Mode = "append" | "exchange";

/** What one replica tells the database about one workspace. Repeating it changes nothing. */
export interface Item {
  workspace: string;
  /** Greater than in each earlier item of the replica. */
  seq: number;
  /**
   * The grant that the replica knows; 0: none, so a new one replaces what the database has. Each grant has a new
   * number, because a late copy of an earlier item can open a grant again that another replica has ended.
   */
  grant: number;
  /**
   * Number of the last item that was answered under this grant; 0: none. If the database has another one, a crash has
   * lost what it did afterwards, so the grant has ended.
   */
  after: number;
  /** Start of the minute of `keep`'s requests and tokens, in ms since 1970. */
  minute: number;
  /** Unused headroom that stays reserved. What the grant has beyond `keep` and `held` is returned. */
  keep: Headroom;
  /** What running requests and settlements of a later item need. */
  held: { credit: number; running: number };
  /** Admitted from the grant since the previous item. Asks that were admitted are counted already. */
  used: { requests: number; input: number };
  asks: readonly Ask[];
  posts: readonly Post[];
  /** Their idempotency keys may be used again, unless a response is kept, and they hold nothing of caps. */
  freed: readonly Freed[];
  subjects?: readonly SubjectReport[];
  /** More headroom, for `n` requests of this size. */
  spare: { n: number; credit: number; input: number; output: number };
  /** Removes the grant, if nothing is reserved. */
  close: boolean;
  mode: Mode;
}

/** Answer to an ask. */
export interface Verdict {
  /** Absent: the request is admitted and counted. */
  refusal?: Refusal;
  /** Another replica has headroom that would let the request pass. It was told to return it. */
  calledBack?: boolean;
  /** The response kept for the idempotency key, in base64. */
  response?: string;
  /** It is admitted, but a cap allows only the effort `low`. */
  low?: boolean;
}

/**
 * Limits of a workspace, and what nobody has reserved of each, by the name of the limit, such as `requests_per_minute`.
 */
export type LimitsLeft = Readonly<Record<string, readonly [limit: number, left: number]>>;

/** Answer to an item. */
export type Reply =
  /** The grant has been ended by another replica. Nothing was posted. */
  | { state: "ended" }
  /** The posts are in the log, and are posted before the grant ends. */
  | { state: "appended" }
  /** The minute of `keep` is over. Nothing was changed. */
  | { state: "again" }
  /** Another transaction locks the workspace for long. An earlier copy of the item may have been applied. */
  | { state: "locked" }
  /** The database refuses the asks and posts of these requests as invalid. Nothing was changed. */
  | { state: "rejected"; requestIds: readonly string[] }
  | {
      state: "done";
      grant: number;
      /** One for each ask. */
      verdicts: readonly Verdict[];
      /** Charges of posts that differ from the item's, by request. */
      charges: Readonly<Record<string, number>>;
      /** Added to the grant. */
      extra: Headroom;
      /** Start of the current minute, in ms since 1970, and what is left of it, in ms. */
      minute: number;
      msLeft: number;
      /** More is reserved than the limits allow, because they have changed. */
      isOver: boolean;
      /** Headroom of subjects that was asked for. */
      subjects?: readonly SubjectGrant[] | undefined;
      /** Null: the workspace has no limits. Absent: nothing was asked for. */
      left?: LimitsLeft | null;
    };

/** The amount of a part without a limit. */
export const LIMITLESS = Number.POSITIVE_INFINITY;

export const PARTS = ["credit", "running", "requests", "input", "output"] as const satisfies (keyof Headroom)[];

export const NOTHING: Readonly<Headroom> = { credit: 0, running: 0, requests: 0, input: 0, output: 0 };
