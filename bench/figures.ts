import type { AdmissionLoad } from "./admission.ts";
import type { ConsoleLoad } from "./console.ts";
import type { MemoryUse } from "./memory.ts";
import type { Kind, Sample } from "./rounds.ts";

/** Everything that a run measured. Parts that did not run are empty or undefined. */
export interface Results {
  samples: Sample[];
  memory: MemoryUse[];
  panelMemory: MemoryUse | undefined;
  admission: AdmissionLoad[];
  console: ConsoleLoad | undefined;
}

/** Medians of the rounds of one contestant. A figure is undefined if it was not measured. */
export interface Row {
  rate: number | undefined;
  p50: number | undefined;
  p99: number | undefined;
  cpuMicros: number | undefined;
  allocatedBytes: number | undefined;
  driverShare: number | undefined;
}

export function rowOf({ samples }: Results, kind: Kind, name: string): Row {
  const mine = samples.filter((sample) => sample.kind === kind && sample.name === name);
  const middle = (pick: (sample: Sample) => number | undefined) => median(mine.map(pick));
  return {
    rate: middle(({ rate }) => rate),
    p50: middle(({ p50 }) => p50),
    p99: middle(({ p99 }) => p99),
    cpuMicros: middle(({ cpuMicros }) => cpuMicros),
    allocatedBytes: middle(({ allocatedBytes }) => allocatedBytes),
    driverShare: middle(({ driverShare }) => driverShare),
  };
}

/** Names of the contestants of a kind, in the order of the first round. */
export function namesOf({ samples }: Results, kind: Kind): string[] {
  return [...new Set(samples.filter((sample) => sample.kind === kind).map(({ name }) => name))];
}

/** Processor time of one contestant divided by that of another. Undefined if one of them is unknown. */
export function cpuRatio(results: Results, kind: Kind, name: string, other: string): number | undefined {
  return divide(rowOf(results, kind, name).cpuMicros, rowOf(results, kind, other).cpuMicros);
}

export function divide(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined || b === 0 ? undefined : a / b;
}

function median(values: Array<number | undefined>): number | undefined {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)];
}
