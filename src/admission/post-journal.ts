import { overloaded } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { Post } from "./escrow/exchange.ts";
import type { Journal } from "./journal.ts";
import type { Entry } from "./journal-file.ts";

/** A row of `generations` without its workspace, where `credits_micro` is the charge; see `exchange()`. */
export interface SettlementRow {
  id: string;
  request_id: string;
  created_at: Date | string;
  credits_micro: string;
  /** Of a request with an idempotency key: the hashes it was admitted with, and the response to keep, in base64. */
  key?: string;
  body?: string;
  response?: string | undefined;
  [column: string]: unknown;
}

/** Whether a row that was read from a file has what decides about the charge. The database checks the rest. */
export function isSettlementRow(row: object): row is SettlementRow {
  const { id, request_id, created_at, credits_micro } = row as Partial<SettlementRow>;
  const isText = (value: unknown) => typeof value === "string" && value !== "";
  const isTime = isText(created_at) && !Number.isNaN(Date.parse(String(created_at)));
  return isText(id) && isText(request_id) && isTime && /^\d{1,18}$/.test(String(credits_micro));
}

/** Time between two trial requests while neither the database nor the journal takes settlements, in milliseconds. */
const TRIAL_MS = 1_000;

/** The journal of settlements that wait for the database, by request. */
export class PostJournal {
  /** Called when settlements are on disk, or could not be written. */
  onWritten: (requestIds: readonly string[], isWritten: boolean) => void = () => undefined;
  readonly #journal: Journal<SettlementRow>;
  readonly #replica: string;
  readonly #log: Log;
  readonly #telemetry: Telemetry | undefined;
  /** Two files of the journal can contain the same request. */
  readonly #entries: Map<string, Entry<SettlementRow>[]>;
  readonly #writing = new Set<string>();
  /** Settlements that reached the database while they were written. */
  readonly #removed = new Set<string>();
  /** When a request may be admitted again, on the clock of `performance.now()`; undefined: settlements succeed. */
  #nextTrial: number | undefined;
  /** Whether the database was unavailable at the last exchange. */
  #isAway = false;
  #last: Promise<void> = Promise.resolve();

  /** @param replica identifier of this process */
  constructor(journal: Journal<SettlementRow>, replica: string, log: Log, telemetry?: Telemetry) {
    this.#journal = journal;
    this.#replica = replica;
    this.#log = log;
    this.#telemetry = telemetry;
    this.#entries = Map.groupBy(journal.pending(), ({ row }) => row.request_id);
    telemetry?.watchJournal(() => this.size, journal.setAside);
  }

  /** Number of settlements that wait. */
  get size(): number {
    return this.#entries.size + this.#writing.size;
  }

  /** Settlements that wait. */
  recovered(): { workspaceId: string; post: Post }[] {
    return [...this.#entries.values()].flatMap((entries) =>
      entries.slice(0, 1).map(({ workspaceId, row }) => ({ workspaceId, post: postOf(row) })),
    );
  }

  /** Writes settlements, and calls `onWritten`. */
  write(workspaceId: string, posts: readonly Post[]): void {
    for (const { requestId } of posts) this.#writing.add(requestId);
    this.#inTurn(() => this.#append(workspaceId, posts));
  }

  /** Removes a settlement that is in the database, also while it is written. */
  remove(requestId: string): void {
    if (this.#writing.has(requestId)) this.#removed.add(requestId);
    const found = this.#entries.get(requestId);
    this.#entries.delete(requestId);
    if (found) this.#inTurn(() => this.#journal.drop(found));
  }

  /** Sets aside a settlement that the database will never accept. */
  refuse(requestId: string): void {
    for (const entry of this.#entries.get(requestId) ?? []) this.#inTurn(() => this.#journal.refuse(entry));
    this.remove(requestId);
  }

  /** Notes that the database has answered. */
  available(): void {
    this.#nextTrial = undefined;
    this.#isAway = false;
  }

  /** Notes why it has not. Logs the first time. */
  unavailable(error: unknown): void {
    if (this.#isAway) return;
    this.#isAway = true;
    this.#log.warn({ cause: errorFacts(error) }, "the database is unavailable; settlements wait in the journal");
  }

  /**
   * Call it before a request is admitted. While neither the database nor the journal takes settlements, it lets one
   * request a second through, whose settlement shows whether that has changed.
   * @throws Failure overloaded
   */
  checkWritable(): void {
    if (this.#nextTrial === undefined) return;
    const now = performance.now();
    if (now < this.#nextTrial) {
      this.#telemetry?.requestShed("journal");
      throw overloaded(new Error("neither the database nor the journal takes settlements"));
    }
    this.#nextTrial = now + TRIAL_MS;
  }

  /** Waits for what is being written, and for what is removed after that. */
  async close(): Promise<void> {
    let last: Promise<void>;
    do {
      last = this.#last;
      await last;
    } while (last !== this.#last);
    await this.#journal.close();
  }

  async #append(workspaceId: string, posts: readonly Post[]): Promise<void> {
    const ids = posts.map(({ requestId }) => requestId);
    const added = posts.map((post): Entry<SettlementRow> => ({ workspaceId, row: rowOf(post, this.#replica) }));
    const cause: unknown = await this.#journal.append(added).catch((error: unknown) => error);
    for (const id of ids) this.#writing.delete(id);
    if (cause === undefined) for (const entry of added) this.#entries.set(entry.row.request_id, [entry]);
    else this.#failed(cause, posts.length);
    this.onWritten(ids, cause === undefined);
    for (const id of ids) if (this.#removed.delete(id)) this.remove(id);
  }

  #failed(cause: unknown, count: number): void {
    this.#telemetry?.journalFailed(count);
    if (this.#nextTrial === undefined) {
      const { folder } = this.#journal;
      this.#log.error({ folder, cause: errorFacts(cause) }, "could not write to the journal in DATA_DIR");
    }
    this.#nextTrial = performance.now() + TRIAL_MS;
  }

  #inTurn(run: () => Promise<void>): void {
    this.#last = this.#last.then(run).catch((cause: unknown) => {
      const { folder } = this.#journal;
      this.#log.error({ folder, cause: errorFacts(cause) }, "could not update the journal in DATA_DIR");
    });
  }
}

/** A row of the journal: the row of the request with its charge, and the replica whose grant covers it. */
function rowOf({ requestId, charge, output, row, admittedBy }: Post, replica: string): SettlementRow {
  return {
    ...(row as SettlementRow),
    request_id: requestId,
    credits_micro: String(charge),
    output_tokens: output,
    admitted_by: admittedBy ?? replica,
  };
}

function postOf(row: SettlementRow): Post {
  const { request_id: requestId, credits_micro, output_tokens, admitted_by } = row;
  return {
    requestId,
    charge: Number(credits_micro),
    output: Number(output_tokens),
    row,
    // Earlier versions have not written it.
    admittedBy: String(admitted_by ?? ""),
  };
}
