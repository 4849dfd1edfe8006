import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { InternalErrors } from "./internal-errors.ts";

interface LabelledCounter<L extends string> {
  /** @throws RangeError for a value that is negative or not finite */
  inc(labels: Readonly<Record<L, string>>, value?: number): void;
}

type Write = (labels: Readonly<Record<string, string>>, value: number) => void;

export type Metrics = ReturnType<typeof declareIn>;

/** @param errors gets what a metric throws at a scrape */
export function declareIn(registry: Registry, errors: InternalErrors) {
  const registers = [registry];

  /** A metric whose values `read` writes anew at each scrape. */
  function watch(
    Type: typeof Counter | typeof Gauge,
    [name, help, ...labelNames]: readonly [name: string, help: string, ...labelNames: string[]],
    read: (write: Write) => void,
    aggregator: "sum" | "average" | "max" = "sum",
  ): void {
    const metric: Counter | Gauge = new Type({
      name,
      help,
      labelNames,
      registers,
      aggregator,
      collect() {
        metric.reset();
        errors.guard("metric", () => read((labels, value) => metric.inc(labels, value)));
      },
    });
  }

  return {
    watchCounter: (declaration: Parameters<typeof watch>[1], read: (write: Write) => void) =>
      watch(Counter, declaration, read),

    watchGauge: (
      declaration: Parameters<typeof watch>[1],
      read: (write: Write) => void,
      aggregator?: Parameters<typeof watch>[3],
    ) => watch(Gauge, declaration, read, aggregator),

    /**
     * A counter that keeps its sums and hands them to prom-client at each scrape, because prom-client sorts, checks and
     * joins the labels at each increment: 0.3 µs and 0.3 KB, seven times a request.
     */
    counter<L extends string = never>(name: string, help: string, ...labelNames: L[]): LabelledCounter<L> {
      const sums = new Map<string, { labels: Record<L, string>; sum: number }>();
      watch(Counter, [name, help, ...labelNames], (write) => {
        for (const { labels, sum } of sums.values()) write(labels, sum);
      });
      return {
        inc(labels, value = 1) {
          if (!(value >= 0 && value < Number.POSITIVE_INFINITY))
            throw new RangeError(`${name} cannot grow by ${value}`);
          let key = "";
          for (const label of labelNames) key += `${labels[label]}\n`;
          const known = sums.get(key);
          if (known) known.sum += value;
          else sums.set(key, { labels: { ...labels }, sum: value });
        },
      };
    },

    histogram: (name: string, help: string, labelNames: string[], buckets: number[]) =>
      new Histogram({ name, help, labelNames, buckets, registers }),
  };
}
