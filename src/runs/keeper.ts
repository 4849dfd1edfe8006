import { TransientMap } from "../concurrency/transient.ts";
import { timeOfGeneration } from "../contract/generation-id.ts";
import type { Pool } from "../store/pool.ts";
import { type RunFacts, recordText } from "./record.ts";
import type { Look } from "./running.ts";
import type { KeptText, StoreTexts } from "./text-store.ts";

/** Longest wait of a run before it is sent, in milliseconds, and number of runs that are sent at once. */
const WAIT_MS = 200;
const MAX_BATCH = 256;

/** Most runs that wait. Further ones are lost. */
const MAX_WAITING = 8_192;

/** Most bytes of text that are sent at once, and that wait. Further texts are lost, but not their runs. */
const MAX_TEXT = { batch: 4_000_000, waiting: 32_000_000 };

const DAY_MS = 86_400_000;

interface Waiting extends Partial<KeptText> {
  readonly workspaceId: string;
  readonly id: string;
  readonly facts: RunFacts;
}

export interface RunsOptions {
  /** Most runs of one workspace on one day (UTC). */
  readonly perDay: number;
  /** Undefined: no text is kept. */
  readonly storeTexts?: StoreTexts | undefined;
}

/**
 * Knows the requests that run, and keeps how they were answered in the database, many at a time. No request waits for
 * it, and a run that cannot be kept is lost.
 */
export class RunKeeper {
  /**
   * What has become of runs and of their texts. `over_cap`: their workspace had too many that day. `lost`: the database
   * was too slow.
   */
  readonly counts = { kept: 0, over_cap: 0, lost: 0, text_kept: 0, text_over_cap: 0, text_lost: 0 };
  /** The requests that run, by the identifiers of their generations. */
  readonly running = new TransientMap<string, Look>();
  readonly #pool: Pick<Pool, "query">;
  readonly #perDay: number;
  readonly #storeTexts: StoreTexts | undefined;
  #waiting: Waiting[] = [];
  /** Bytes of text that wait. */
  #textBytes = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;
  /** Workspaces that have their number of runs of the day. */
  readonly #filled = new Set<string>();
  #day = 0;

  constructor(pool: Pick<Pool, "query">, { perDay, storeTexts }: RunsOptions) {
    this.#pool = pool;
    this.#perDay = perDay;
    this.#storeTexts = storeTexts;
  }

  /** Whether texts can be kept. */
  get keepsText(): boolean {
    return this.#storeTexts !== undefined;
  }

  /** Shows a request until it is kept, or has ended. */
  begin(id: string, look: Look): void {
    this.running.set(id, look);
  }

  /** Ends what was begun, also if nothing is kept. @param id undefined: nothing was begun */
  end(id: string | undefined): void {
    if (id !== undefined) this.running.delete(id);
  }

  /**
   * Keeps what a request of a workspace leaves. It never waits and never throws.
   * @param text undefined: it is not kept
   */
  keep(workspaceId: string, id: string, facts: RunFacts, text?: KeptText): void {
    this.running.delete(id);
    if (this.#filled.has(workspaceId) && !this.#isNextDay(id)) this.counts.over_cap += 1;
    else if (this.#waiting.length >= MAX_WAITING) this.counts.lost += 1;
    else {
      this.#waiting.push({ workspaceId, id, facts, ...this.#admitted(text) });
      if (!this.#running) this.#schedule();
    }
  }

  #schedule(): void {
    if (this.#waiting.length >= MAX_BATCH) this.#start();
    else if (this.#waiting.length > 0) this.#timer ??= setTimeout(() => this.#start(), WAIT_MS).unref();
  }

  /** Counts the bytes of a text that waits. @returns undefined for one that is lost */
  #admitted(text: KeptText | undefined): KeptText | undefined {
    if (!text) return undefined;
    if (this.#textBytes + text.text.length > MAX_TEXT.waiting) {
      this.counts.text_lost += 1;
      return undefined;
    }
    this.#textBytes += text.text.length;
    return text;
  }

  /** Resolves when the runs that wait now are in the database, or lost. */
  async flush(): Promise<void> {
    await this.#running;
    const last = this.#waiting.at(-1);
    while (last && this.#waiting.includes(last)) {
      this.#start();
      await this.#running;
    }
  }

  #isNextDay(id: string): boolean {
    const day = Math.floor((timeOfGeneration(id) ?? 0) / DAY_MS);
    if (day <= this.#day) return false;
    this.#day = day;
    this.#filled.clear();
    return true;
  }

  #start(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#running ??= this.#send().finally(() => {
      this.#running = undefined;
      this.#schedule();
    });
  }

  async #send(): Promise<void> {
    const batch = this.#take();
    const last = batch.at(-1);
    try {
      const text = `[${batch.map(rowText).join()}]`;
      const [row] = await this.#pool.query<{ filled: string[] }>("select keep_runs($1, $2) as filled", [
        text,
        this.#perDay,
      ]);
      this.counts.kept += batch.length;
      if (last) this.#isNextDay(last.id);
      for (const workspaceId of row?.filled ?? []) this.#filled.add(workspaceId);
    } catch {
      // The database is unavailable, which settlements report.
      this.counts.lost += batch.length;
    }
    await this.#sendTexts(batch);
  }

  /** Takes the runs of the next batch: at least one, and no more text than a batch may have. */
  #take(): Waiting[] {
    let bytes = 0;
    const end = this.#waiting.findIndex(({ text }, place) => {
      bytes += text?.length ?? 0;
      return place === MAX_BATCH || (place > 0 && bytes > MAX_TEXT.batch);
    });
    return this.#waiting.splice(0, end < 0 ? MAX_BATCH : end);
  }

  async #sendTexts(batch: readonly Waiting[]): Promise<void> {
    const texts = batch.flatMap(({ workspaceId, id, keyId, text }) =>
      keyId !== undefined && text ? [{ workspaceId, id, keyId, text }] : [],
    );
    if (texts.length === 0 || !this.#storeTexts) return;
    for (const { text } of texts) this.#textBytes -= text.length;
    try {
      const kept = await this.#storeTexts(texts);
      this.counts.text_kept += kept;
      this.counts.text_over_cap += texts.length - kept;
    } catch {
      this.counts.text_lost += texts.length;
    }
  }
}

/** A row of `runs` as JSON text. */
function rowText({ workspaceId, id, facts }: Waiting): string {
  const place = { workspace_id: workspaceId, began_at: new Date(timeOfGeneration(id) ?? 0), id };
  return `${JSON.stringify(place).slice(0, -1)},"record":${recordText(facts)}}`;
}
