/** What the neighbour, the operator and the owner send. */
export type Kind = "unary" | "long" | "rpc" | "stream" | "operator" | "signIn";

/** One request of them. */
export interface Sample {
  kind: Kind;
  ms: number;
  firstMs: number;
  /** A status other than 200, or what else was wrong. */
  error?: string;
}

/** What the neighbour saw in one phase. Times are in milliseconds. */
export interface Figures {
  requests: number;
  /** Numbers of its errors, by kind of error. */
  errors: Record<string, number>;
  /** Of whole answers. */
  p50: number;
  p99: number;
  /** First byte of streams. */
  firstP99: number;
  /** The longest of all its requests, failed ones included. */
  longest: number;
  /** The same of operator and owner together. */
  operators: { requests: number; errors: Record<string, number>; longest: number };
}

export function figuresOf(samples: readonly Sample[]): Figures {
  const operators = samples.filter(({ kind }) => kind === "operator" || kind === "signIn");
  const own = samples.filter((sample) => !operators.includes(sample));
  const answered = own.filter(({ error }) => error === undefined);
  const whole = answered.filter(({ kind }) => kind !== "stream").map(({ ms }) => ms);
  const first = answered.filter(({ kind }) => kind === "stream").map(({ firstMs }) => firstMs);
  return {
    requests: own.length,
    errors: errorsOf(own),
    p50: quantile(whole, 0.5),
    p99: quantile(whole, 0.99),
    firstP99: quantile(first, 0.99),
    longest: longestOf(own),
    operators: { requests: operators.length, errors: errorsOf(operators), longest: longestOf(operators) },
  };
}

export function total(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

function errorsOf(samples: readonly Sample[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind, error } of samples) {
    if (error === undefined) continue;
    const what = `${kind} ${error}`;
    counts[what] = (counts[what] ?? 0) + 1;
  }
  return counts;
}

function longestOf(samples: readonly Sample[]): number {
  return samples.reduce((longest, { ms }) => Math.max(longest, ms), 0);
}

function quantile(values: number[], q: number): number {
  values.sort((a, b) => a - b);
  return values[Math.min(values.length - 1, Math.floor(values.length * q))] ?? Number.NaN;
}
