import { setTimeout as sleep } from "node:timers/promises";

/** Pause between questions to a server that is away, in milliseconds. */
const PAUSE_MS = 250;

/** Remembers that a server is away, so that nobody waits for it in vain. */
export interface Availability {
  /** @throws what the server's absence showed itself by, while it is away */
  pass(): void;
  /** Something failed as it does when the server is away. Asks the server, and closes the gate until it answers. */
  suspect(): void;
  /** Ends the questions. */
  end(): void;
}

/** @param ask resolves when the server is there, and rejects, before long, when it is away */
export function createAvailability(ask: () => Promise<void>): Availability {
  const ending = new AbortController();
  let away: { error: unknown } | undefined;
  let asking = false;

  async function untilBack(): Promise<void> {
    while (!ending.signal.aborted) {
      try {
        await ask();
        away = undefined;
        return;
      } catch (error) {
        away = { error };
        await sleep(PAUSE_MS, undefined, { signal: ending.signal }).catch(() => undefined);
      }
    }
  }

  return {
    pass() {
      if (away) throw away.error;
    },
    suspect() {
      if (asking || ending.signal.aborted) return;
      asking = true;
      void untilBack().finally(() => {
        asking = false;
      });
    },
    end: () => ending.abort(),
  };
}
