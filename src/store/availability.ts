import { setTimeout as sleep } from "node:timers/promises";

/**
 * Mean pause between two probes of a server that is unavailable, in milliseconds. Each pause is 50 % to 150 % of it, at
 * random, so that replicas do not probe a server that comes back at the same moment.
 */
const PAUSE_MS = 250;

/**
 * Remembers that a server is unavailable, so that statements fail at once instead of after a timeout.
 * @param probe resolves when the server answers; must reject within a few seconds when it does not
 * @param onChange called when the server has become unavailable or available again
 */
export function createAvailability(
  probe: () => Promise<void>,
  onChange: (isAvailable: boolean) => void = () => undefined,
) {
  const closing = new AbortController();
  let unavailable: { error: unknown } | undefined;
  let isProbing = false;
  let hasAnswered = false;

  function markAvailable(): void {
    if (unavailable) onChange(true);
    unavailable = undefined;
  }

  async function probeUntilAvailable(): Promise<void> {
    while (!closing.signal.aborted) {
      hasAnswered = false;
      try {
        await probe();
        markAvailable();
        return;
      } catch (error) {
        if (hasAnswered) return;
        if (!unavailable) onChange(false);
        unavailable = { error };
        await sleep(PAUSE_MS * (0.5 + Math.random()), undefined, { signal: closing.signal }).catch(() => undefined);
      }
    }
  }

  return {
    /** @throws the error of the last probe, while the server is unavailable */
    check(): void {
      if (unavailable) throw unavailable.error;
    },
    /** Reports a failure that an unavailable server can cause. Probes the server until it answers. */
    reportFailure(): void {
      if (isProbing || closing.signal.aborted) return;
      isProbing = true;
      void probeUntilAvailable().finally(() => {
        isProbing = false;
      });
    },
    /** Reports that a statement got its answer. While statements get answers, a failed probe has no effect. */
    reportAnswer(): void {
      hasAnswered = true;
      markAvailable();
    },
    /** Stops the probes. */
    close: () => closing.abort(),
  };
}
