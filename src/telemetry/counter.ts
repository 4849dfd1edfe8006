import { Counter, type Registry } from "prom-client";
import type { InternalErrors } from "./internal-errors.ts";

/** A counter with fixed labels. */
interface LabelledCounter<L extends string> {
  /** @throws RangeError for a value that is negative or not finite */
  inc(labels: Readonly<Record<L, string>>, value?: number): void;
}

/** Creates a counter without labels. */
export function counter(registry: Registry, name: string, help: string): Counter {
  return new Counter({ name, help, registers: [registry] });
}

/**
 * Creates a counter with labels. It keeps the sums and hands them to prom-client at each scrape, because prom-client
 * sorts, checks and joins the labels at each increment: 0.3 µs and 0.3 KB, seven times a request.
 * @param errors gets what prom-client throws at a scrape
 */
export function labelledCounter<L extends string>(
  registry: Registry,
  errors: InternalErrors,
  name: string,
  help: string,
  labelNames: readonly L[],
): LabelledCounter<L> {
  const sums = new Map<string, { labels: Record<L, string>; sum: number }>();
  new Counter({
    name,
    help,
    labelNames,
    registers: [registry],
    collect() {
      this.reset();
      errors.guard("metric", () => {
        for (const { labels, sum } of sums.values()) this.inc(labels, sum);
      });
    },
  });
  return {
    inc(labels, value = 1) {
      if (!(value >= 0 && value < Number.POSITIVE_INFINITY)) throw new RangeError(`${name} cannot grow by ${value}`);
      let key = "";
      for (const label of labelNames) key += `${labels[label]}\n`;
      const known = sums.get(key);
      if (known) known.sum += value;
      else sums.set(key, { labels: { ...labels }, sum: value });
    },
  };
}
