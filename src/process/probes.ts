import { setTimeout as sleep } from "node:timers/promises";
import type { Catalogue, Probed } from "../models/catalogue.ts";

/** Time between two probes of models that were refused, in milliseconds. */
const AGAIN_MS = 30_000;

export interface Probes {
  /** Resolves to what the first probe of all models has found, or after `ms` milliseconds to nothing. */
  first(ms: number): Promise<readonly Probed[]>;
  /** Probes all models, because they may have changed. */
  again(): void;
  stop(): Promise<void>;
}

/** Probes all models, then those that were refused every 30 seconds, so that a mended key is noticed. */
export function startProbes(models: () => Catalogue): Probes {
  const stopping = new AbortController();
  let waiting = new AbortController();
  let all = true;
  const found = Promise.withResolvers<readonly Probed[]>();

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const isAll = all;
      all = false;
      waiting = new AbortController();
      found.resolve(await models().probe(stopping.signal, { onlyRefused: !isAll }));
      const signal = AbortSignal.any([stopping.signal, waiting.signal]);
      if (!all) await sleep(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    first: (ms) => Promise.race([found.promise, sleep(ms, [], { ref: false })]),
    again() {
      all = true;
      waiting.abort();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/**
 * What the first probe has found, as sentences for the operator: what failed, and what to do.
 * @param file path of the catalogue file; undefined for the built-in catalogue
 */
export function probeLines(found: readonly Probed[], file: string | undefined): string[] {
  const groups = Map.groupBy(found, ({ entry: { vendor, baseUrl, apiKeyEnv }, failure: { status, code } }) =>
    JSON.stringify([vendor, baseUrl, apiKeyEnv, status, code]),
  );
  return [...groups.values()].flatMap((group) => {
    const [first] = group;
    return first ? [sentence(first, group.map(({ entry }) => entry.name).join(", "), file)] : [];
  });
}

function sentence({ entry, failure }: Probed, names: string, file: string | undefined): string {
  const { vendor, baseUrl, apiKeyEnv = "its key" } = entry;
  const why = [failure.status, failure.code].filter(Boolean).join(" ");
  const where = baseUrl ? `${vendor} at ${new URL(baseUrl).origin}` : vendor;
  if (failure.status === undefined) {
    const reason = why && ` (${why})`;
    return `${where} cannot be reached${reason}, so ${names} cannot answer. Start it, or correct its address.`;
  }
  if (failure.status === 404) {
    const place = file ? `"model" in ${file}` : "the catalogue";
    return `${where} has no model "${entry.model}" (${why}), so ${names} cannot answer. Correct ${place}.`;
  }
  return `${where} refuses ${apiKeyEnv} (${why}), so ${names} cannot answer. Set a valid key, then start again.`;
}
