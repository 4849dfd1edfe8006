import type { Ask, Item, Mode, Post, Reply } from "./exchange.ts";
import type { Refusal } from "./refusal.ts";

/** What happens at a replica. */
export type Event =
  /** A request arrives. It is answered with `admit`, `refuse` or `replay`. */
  | ({ type: "request"; workspace: string } & Ask)
  /** Requests that were admitted have ended. Each is answered with `confirm` or `deny`. */
  | { type: "settle"; posts: readonly Post[] }
  /** A settlement was found in the journal of an earlier process, or of this one. */
  | { type: "recover"; workspace: string; post: Post }
  /** The answers to `send`, in its order. Undefined: the database has executed a later item. */
  | { type: "receive"; mode: Mode; replies: readonly (Reply | undefined)[] }
  /** The answer to `send` did not come. It may have been applied. */
  | { type: "fail"; mode: Mode }
  /** `journal` has written the settlements, or has failed. */
  | { type: "journaled"; requestIds: readonly string[]; isWritten: boolean }
  /** Another replica needs headroom of a workspace, or of a subject, or its limits or caps have changed. */
  | { type: "callBack"; workspace: string; subject?: string }
  /** Somebody asks what the requests of a workspace use. */
  | { type: "report"; workspace: string }
  /** The database has a grant of this replica. Statements that time out here can still be executed. */
  | { type: "find"; workspace: string; grant: number }
  /** A heartbeat that was sent at this time was written. `isDeaf`: call-backs of other replicas may be lost. */
  | { type: "beat"; sentAt: number; isDeaf: boolean }
  | { type: "tick" }
  /** Returns all unused headroom. */
  | { type: "stop" };

/** What the replica has to do. */
export type Command =
  /** `isLow`: a cap allows only the effort `low`. */
  | { type: "admit"; requestId: string; isLow?: boolean }
  /** Without a refusal: the database is unavailable. */
  | { type: "refuse"; requestId: string; refusal: Refusal | undefined }
  | { type: "replay"; requestId: string; response: string }
  /** The settlement is durable: the end of the answer may leave. */
  | { type: "confirm"; requestId: string; charge: number }
  /**
   * Nothing has recorded the request or its settlement: it is not charged, and the end of the answer may not leave.
   * `isInvalid`: because the database refuses it.
   */
  | { type: "deny"; requestId: string; isInvalid?: boolean }
  | { type: "journal"; workspace: string; posts: readonly Post[] }
  /** A settlement that was written to the journal is in the database, or has to be settled again with `recover`. */
  | { type: "unjournal"; requestId: string }
  | { type: "send"; mode: Mode; items: readonly Item[] };
