/** A line that V8 writes for a collection with `--trace-gc`: isolate, MB before and after. */
const COLLECTION = /^\[\d+:(0x[0-9a-f]+)\].*? ([\d.]+) \([\d.]+\) -> ([\d.]+) \([\d.]+\) MB/;

/**
 * Sums up what a process allocates on the heaps of its threads, from the lines of `--trace-gc`: the growth from one
 * collection to the next. The newest allocations count at the next collection.
 */
export class Allocated {
  bytes = 0;
  #rest = "";
  /** MB after the last collection, by isolate. */
  readonly #after = new Map<string, number>();

  /** Takes output of the process. */
  readonly push = (output: string): void => {
    const lines = (this.#rest + output).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const [, isolate = "", before, after] = COLLECTION.exec(line) ?? [];
      if (before === undefined) continue;
      this.bytes += (Number(before) - (this.#after.get(isolate) ?? 0)) * 1_048_576;
      this.#after.set(isolate, Number(after));
    }
  };
}
