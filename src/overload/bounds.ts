/**
 * What protects callers from each other: what may be in use, may wait, or may happen in one turn of the event loop.
 * Callers' own limits (rates, credit) are not here, and neither is what the operator sets (`CHORUS_BODY_BUDGET_BYTES`,
 * `CHORUS_BODY_MS`, `CHORUS_STREAM_MS`, `CHORUS_MAX_LOOP_DELAY_MS`). docs/overload.md says what a caller sees. The
 * table of failures has the wait that goes with a refusal.
 */

/**
 * Pieces of work in one turn of the event loop, after which everything else has its turn. Each piece takes the stated
 * time, so that a turn takes a few milliseconds; `Turns` starts more while pieces prove to be shorter.
 */
export const PER_TURN = {
  /** New connections that are accepted: 0.05 ms. */
  accepted: 64,
  /** Requests whose callers left: 0.1 ms. */
  left: 16,
  /** Requests that begin behind an earlier one of their connection: 0.1 to 0.3 ms. */
  pipelined: 4,
  /** Requests that begin on HTTP/2 sessions: 0.1 to 0.3 ms. */
  http2: 16,
  /** Chunks of large bodies, up to 2 MB each. */
  chunks: 2,
  /** Chunks of refused bodies, up to 64 KB each. */
  dropped: 4,
  /** Bodies that are refused because they are late: 0.3 ms. */
  late: 8,
  /** Starts and ends of requests: 0.03 to 0.3 ms. At least, and at most. */
  requests: [8, 64],
  /** Items of a database statement whose result is passed on: 0.1 ms. */
  results: 8,
  /** Slices of 8 KB of an answer whose tokens are counted: 0.2 ms, 7 ms in the worst case. */
  counted: 2,
} as const;

/** Bodies of requests. */
export const BODIES = {
  /** Largest body, in bytes. */
  max: 64 * 1024 * 1024,
  /** Largest body of a service that takes no prompts, in bytes. */
  maxSmall: 64 * 1024,
  /** Largest body of an outcome, in bytes. Each of its 20,000 characters may be two escapes of JSON. */
  maxOutcome: 256 * 1024,
  /** Most values in a body. A body with so many is parsed in 50 ms. */
  maxValues: 100_000,
  /** Largest body that is read on the event loop, in bytes. In the worst case its text takes 13 ms to count. */
  maxInline: 16 * 1024,
  /** Bytes of a body that are read without pauses. */
  unpaced: 256 * 1024,
  /** Least rate at which a body must arrive after its first `idleMs`, in bytes per millisecond (128 kbit/s). */
  leastRate: 16,
  /** How much of a refused body is still read, and for how long, in milliseconds. */
  dropped: { bytes: 1024 * 1024, ms: 1_000 },
  /** The part of the memory that one sender may use. */
  ownShare: 0.5,
  /** The part of the memory that senders with more than `small` bytes may use together. */
  largeShare: 0.75,
  small: 1024 * 1024,
  /** Memory for the bodies of sign-ins, owners and operators, in bytes. */
  adminBytes: 16 * 1024 * 1024,
} as const;

/** Connections and the requests on them. */
export const CONNECTIONS = {
  /**
   * Connections that wait to be accepted; the system may allow fewer. With Node's default of 511, a burst of one caller
   * fills the queue. The system then drops the connections of others, whose clients try again after a second.
   */
  backlog: 4_096,
  /** Connections beyond the limit, for operators and for refusals. A further one replaces the oldest. */
  spare: 32,
  /** Requests of a connection that wait for an earlier response, and bytes that may arrive behind the first of them. */
  pipelined: { requests: 32, bytes: 64 * 1024 },
  /** A workspace that uses more than `own` of the connections is refused further ones while `all` are in use. */
  share: { own: 0.5, all: 0.75 },
} as const;

/** What waits for the database. A further item is refused. */
export const WAITING = {
  /** Statements that wait for a connection. */
  statements: 1_000,
  /** Look-ups of keys, tokens and standings: in one statement, and in all. */
  lookUps: { maxItems: 1_000, maxWaiting: 10_000 },
  /** Requests that wait for headroom. */
  admissions: 20_000,
} as const;

/**
 * Connections for reports and administration of callers and owners together, of the ten for administration, and the
 * longest wait for one, in milliseconds. A workspace alone has two. The others are left for operators, look-ups of
 * tokens and sessions, and maintenance.
 */
export const ADMINISTRATION = { connections: 4, maxWaitMs: 5_000 } as const;

/** When the event loop is late, the workspaces that send most requests are refused some. */
export const SHEDDING = {
  /** Length of a window, in milliseconds. */
  windowMs: 500,
  /** Factors of the cap after a window with too much delay and after one with little. */
  decrease: 0.7,
  increase: 1.25,
  /** Lowest cap, in requests of a window, because a workspace with so few is not the reason for the delay. */
  minCap: 50,
  /** Windows in a row with little delay and without a refusal after which nothing is counted any more. */
  calmWindows: 10,
} as const;
