import { Escrow } from "../../src/admission/escrow/escrow.ts";
import type { Ask, Item, Mode, Post, Reply } from "../../src/admission/escrow/exchange.ts";
import type { Account, Limits } from "./account.ts";
import type { Cap, SubjectRow } from "./caps.ts";
import type { Defects } from "./defects.ts";

/** A request of a client. */
export interface Request extends Ask {
  workspace: string;
  replica: Replica;
  /** `ended`: its end has left, or has failed. */
  state: "asked" | "running" | "settled" | "delivered" | "replayed" | "denied" | "refused" | "lost";
  charge: number;
  /** The grant under which it was admitted has been ended. */
  isOrphan: boolean;
  /** Posted after its grant had ended: charged as far as limits and balance allow. */
  isLate: boolean;
  /** Neither the database nor the journal has confirmed it. Both may have it. */
  isUnknown: boolean;
  /** When it arrived, or was settled. */
  since: number;
  /** When it was refused, or its end was. */
  failedAt: number;
  /** Its settlement has a response to keep for the idempotency key. */
  hasResponse: boolean;
  /** For whom it is made. */
  row: SubjectRow;
  /** Set when its replica has admitted it by itself, from the headroom of its subjects. */
  shared?: SharedAdmission;
}

/** The grant under which a replica has admitted a request, and the minute of the headroom of each of its subjects. */
export interface SharedAdmission {
  grant: number;
  minutes: ReadonlyMap<string, number>;
}

/** A process that admits requests. */
export interface Replica {
  readonly id: string;
  readonly escrow: Escrow;
  state: "up" | "asleep" | "dead";
  wakesAt: number;
  /** Until then no message passes in either direction. */
  cutOffUntil: number;
  /** Between these times it gets no call-back, and from the time between them it knows that. */
  deaf: { from: number; known: number; until: number };
  /** What its last heartbeat told it. */
  isToldDeaf: boolean;
  /** When the database last saw a heartbeat. */
  beatAt: number;
  nextBeat: number;
  nextTick: number;
  /** Number of the statement of each mode that is awaited; 0: none. */
  awaited: Record<Mode, number>;
  /** Settlements on its disk. */
  journal: Map<string, { workspace: string; post: Post }>;
  /** Settlements that reached the database while they were written to the disk. */
  unjournaled: Set<string>;
}

/** Defects that tests plant; those of `Defects` are in the database. */
export interface Mutation extends Defects {
  /** A replica does not deduct holds from its headroom. */
  forgetsHolds?: boolean;
  /** Nor from the headroom of its subjects. */
  forgetsShares?: boolean;
  /** The end of an answer leaves before its settlement is durable. */
  opensGate?: boolean;
  /** Answers a statement that posts settlements before it is flushed. */
  neverFlushes?: boolean;
}

/** A call of the database, in the order in which it was executed. */
export type Call =
  | {
      do: "exchange";
      replica: string;
      items: readonly Item[];
      at: number;
      live: number;
      replies: (Reply | undefined)[];
    }
  | { do: "open"; workspace: string; granted: number; purchased: number; limits: Limits; at: number }
  | { do: "end"; replica: string; at: number }
  | { do: "post"; workspace: string; at: number; after: Account }
  | { do: "limits"; workspace: string; limits: Limits; at: number }
  | { do: "set cap" | "clear cap"; workspace: string; cap: Cap; at: number }
  | { do: "grant"; workspace: string; amount: number; at: number };

export function isOpen({ state }: Request): boolean {
  return state === "asked" || state === "running" || state === "settled";
}

/** Whether a replica awaits an answer of the database. */
export function isAwaiting({ awaited }: Replica): boolean {
  return awaited.append > 0 || awaited.exchange > 0;
}

export function newReplica(id: string, now: number, beatMs: number, tickMs: number): Replica {
  const times = { wakesAt: 0, cutOffUntil: 0, beatAt: now, nextBeat: now + beatMs, nextTick: now + tickMs };
  const awaited = { append: 0, exchange: 0 };
  const deaf = { from: 0, known: 0, until: 0 };
  const journal = { journal: new Map(), unjournaled: new Set<string>() };
  return { id, escrow: new Escrow(id), state: "up", ...times, deaf, isToldDeaf: false, awaited, ...journal };
}
