import { setTimeout as sleep } from "node:timers/promises";

/** Pause between two requests, and the longest wait for an answer, in milliseconds. */
const PAUSE_MS = 20;
const TIMEOUT_MS = 2_000;

/** A caller that sends one request after the other. */
export interface Probe {
  /**
   * Resolves with the time of the first answer to a request that was sent after a time. Both are those of
   * `performance.now()`.
   */
  answered(after: number): Promise<number>;
  stop(): Promise<void>;
}

/** Starts a caller of the service at `url`. */
export function startProbe(url: string, apiKey: string): Probe {
  let stopping = false;
  let lastSentAt = 0;
  let lastAnswerAt = 0;

  async function ask(): Promise<boolean> {
    const response = await fetch(`${url}/v1/generate`, {
      method: "POST",
      headers: { "x-api-key": apiKey, "content-type": "application/json" },
      body: JSON.stringify({ prompt: "Tell me something.", max_tokens: 60 }),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    await response.arrayBuffer();
    return response.status === 200;
  }

  const running = (async () => {
    while (!stopping) {
      const sentAt = performance.now();
      if (await ask().catch(() => false)) {
        lastSentAt = sentAt;
        lastAnswerAt = performance.now();
      }
      await sleep(PAUSE_MS);
    }
  })();

  return {
    async answered(after) {
      while (lastSentAt <= after) await sleep(5);
      return lastAnswerAt;
    },
    async stop() {
      stopping = true;
      await running;
    },
  };
}
