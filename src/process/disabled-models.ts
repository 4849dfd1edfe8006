import { repeat } from "../concurrency/repeat.ts";
import type { Notifications } from "../store/notifications.ts";
import { isUnavailable, type Pool } from "../store/pool.ts";
import { errorFacts, type Log } from "../telemetry/log.ts";

/** Channel of the message that models were disabled or enabled. */
const CHANNEL = "disabled_models";

/** Time between two reads, in milliseconds, because messages may be lost. */
const READ_MS = 10_000;

/** The models that operators have disabled, which the process follows. */
export interface DisabledModels {
  /** Their names in the catalogue. Another set whenever they have changed. */
  names(): ReadonlySet<string>;
  /** Reads them now. */
  read(): Promise<void>;
  /** Reads them for the first time. @param pool one that serves before the start has ended */
  readFirst(pool: Pick<Pool, "query">): Promise<void>;
  /** Calls a listener with the names of models that were disabled and are not any more. */
  onEnabled(listener: (models: readonly string[]) => void): void;
  stop(): Promise<void>;
}

/**
 * Follows which models are disabled: reads them at each message, and every ten seconds. When a read fails, they stay as
 * they were.
 */
export function followDisabledModels(
  pool: Pick<Pool, "query">,
  notifications: Pick<Notifications, "listen">,
  log: Log,
): DisabledModels {
  let names: ReadonlySet<string> = new Set();
  let enabled: (models: readonly string[]) => void = () => undefined;
  let last: Promise<void> = Promise.resolve();

  async function readFrom({ query }: Pick<Pool, "query">): Promise<void> {
    const rows = await query<{ model: string }>("select model from disabled_models order by model");
    const next = new Set(rows.map(({ model }) => model));
    if (next.symmetricDifference(names).size === 0) return;
    const before = names;
    names = next;
    if (next.size > 0) log.warn({ models: [...next] }, "models are disabled");
    else log.info("no model is disabled any more");
    const again = [...before.difference(next)];
    if (again.length > 0) enabled(again);
  }

  const read = () => {
    // An earlier read may have begun before the change.
    last = last.catch(() => undefined).then(() => readFrom(pool));
    return last;
  };
  const readQuietly = () =>
    read().catch((error: unknown) => {
      if (!isUnavailable(error)) log.warn({ cause: errorFacts(error) }, "could not read which models are disabled");
    });
  const reading = repeat(readQuietly, READ_MS, { waitsFirst: true });
  notifications.listen(CHANNEL, reading.soon);
  return {
    names: () => names,
    read,
    readFirst: readFrom,
    onEnabled(listener) {
      enabled = listener;
    },
    async stop() {
      await reading.stop();
      await last.catch(() => undefined);
    },
  };
}
