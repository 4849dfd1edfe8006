import type { Ask, Item, Post, SubjectReport } from "./exchange.ts";

/** A request that waits for the database. */
export interface QueuedAsk extends Ask {
  /** When replicas were told to return headroom that was in its way; undefined: they were not. */
  calledAt?: number;
  /** When it may be asked for again. */
  retryAt: number;
  /** The request was refused here, because the answer did not come. What it gets is returned. */
  isAbandoned?: boolean;
}

/** A request that runs. */
export interface Running extends Ask {
  /** It was admitted here, from the headroom of its subjects. */
  isShared?: boolean;
}

/** A settlement that the database has not confirmed. */
export interface Unposted extends Post {
  /** In the journal, or on its way there. */
  isJournaled?: boolean;
  /** Hash of the idempotency key. */
  key?: string | undefined;
  /** See `Ask`. */
  subjects?: readonly string[] | undefined;
}

/** An item whose answer has not arrived. */
export interface Flight {
  item: Omit<Item, "asks" | "posts"> & { asks: QueuedAsk[]; posts: Unposted[]; subjects: SubjectReport[] };
  sentAt: number;
}
