import { STEADY } from "./admission.ts";
import { DOORS } from "./door-requests.ts";
import { DOOR_KINDS } from "./doors.ts";
import { cpuRatio, divide, type Results, rowOf } from "./figures.ts";
import { PANEL } from "./panel.ts";
import { figure, table } from "./tables.ts";

/** A figure that the project wants to reach. */
interface Goal {
  name: string;
  /** Target, inclusive. */
  bound: { least: number } | { most: number };
  unit?: string;
  /** @returns the measured figure; undefined if it was not measured */
  read(results: Results): number | undefined;
}

const RELAY = "bare relay";

const GOALS: readonly Goal[] = [
  {
    name: "burst streams: Chorus ÷ bare relay",
    bound: { least: 0.5 },
    read: (results) => cpuRatio(results, "burst", RELAY, "Chorus"),
  },
  {
    name: "burst streams: Chorus ÷ Portkey",
    bound: { least: 2 },
    read: (results) => cpuRatio(results, "burst", "Portkey", "Chorus"),
  },
  {
    name: "paced streams, per token: Chorus ÷ bare relay",
    bound: { least: 0.8 },
    read: (results) => cpuRatio(results, "paced", RELAY, "Chorus"),
  },
  {
    name: "paced streams, per token: Chorus ÷ Portkey",
    bound: { least: 1 },
    read: (results) => cpuRatio(results, "paced", "Portkey", "Chorus"),
  },
  {
    name: "unary: Chorus ungoverned ÷ bare relay",
    bound: { least: 0.4 },
    read: (results) => cpuRatio(results, "unary", RELAY, "Chorus ungoverned"),
  },
  {
    name: "unary: Chorus ÷ Portkey",
    bound: { least: 3.5 },
    read: (results) => cpuRatio(results, "unary", "Portkey", "Chorus"),
  },
  {
    name: "unary: Chorus ÷ Chorus ungoverned",
    bound: { least: 0.95 },
    read: (results) => cpuRatio(results, "unary", "Chorus ungoverned", "Chorus"),
  },
  {
    name: "burst streams: Chorus ÷ Chorus ungoverned",
    bound: { least: 0.8 },
    read: (results) => cpuRatio(results, "burst", "Chorus ungoverned", "Chorus"),
  },
  {
    name: "paced streams: time of gRPC (HTTP/2) per token / time of SSE",
    bound: { most: 1.2 },
    read: (results) => cpuRatio(results, "rpc paced", "gRPC", "SSE"),
  },
  ...(["p50", "p99"] as const).map((at) => ({
    name: `latency at 200 requests/s, ${at}: Chorus − bare relay`,
    bound: { most: at === "p50" ? 1 : 3 },
    unit: "ms",
    read: (results: Results) => minus(rowOf(results, "latency", "Chorus")[at], rowOf(results, "latency", RELAY)[at]),
  })),
  ...["Connect HTTP/1.1", "Connect HTTP/2", "gRPC"].map((protocol) => ({
    name: `unary: time of ${protocol} / time of REST`,
    bound: { most: 1.2 },
    read: (results: Results) => cpuRatio(results, "rpc unary", protocol, "REST"),
  })),
  ...DOOR_KINDS.map((kind) => ({
    name: `${kind}: time of the slowest door / time of REST`,
    bound: { most: 1.1 },
    read: (results: Results) => slowestDoor(results, kind),
  })),
  {
    name: "panel of three that agrees, CPU time per answer",
    bound: { most: 1_200 },
    unit: "µs",
    read: (results) => rowOf(results, "panel", PANEL.agree).cpuMicros,
  },
  {
    name: "panel of three that agrees, heap allocated per answer",
    bound: { most: 150 },
    unit: "KB",
    read: (results) => divide(rowOf(results, "panel", PANEL.agree).allocatedBytes, 1_024),
  },
  {
    name: "resident memory for a panel of three that waits for its drafts",
    bound: { most: 150 },
    unit: "KB",
    read: ({ panelMemory }) => divide(panelMemory?.bytesPerStream, 1_024),
  },
  {
    name: "resident memory for an open stream, 5,000 at once",
    bound: { most: 50 },
    unit: "KB",
    read: ({ memory }) => {
      const bytes = memory.find(({ name, streams }) => name === "Chorus" && streams === 5_000)?.bytesPerStream;
      return bytes === undefined ? undefined : bytes / 1_024;
    },
  },
  {
    name: "requests per second that are admitted and settled for one workspace, with Postgres on the same core",
    bound: { least: 4_000 },
    read: ({ admission }) => (admission.length === 0 ? undefined : Math.max(...admission.map(({ rate }) => rate))),
  },
  {
    name: `CPU time of Postgres for a request, ${STEADY}`,
    bound: { most: 300 },
    unit: "µs",
    read: ({ admission }) => admission.find(({ name }) => name === STEADY)?.postgresMicros,
  },
  {
    name: "scripts of the owner's pages of the console, gzipped",
    bound: { most: 150_000 },
    unit: "bytes",
    read: (results) => results.console?.scriptBytes,
  },
];

function slowestDoor(results: Results, kind: (typeof DOOR_KINDS)[number]): number | undefined {
  const ratios = DOORS.map((door) => cpuRatio(results, kind, door, "REST")).filter((ratio) => ratio !== undefined);
  return ratios.length === 0 ? undefined : Math.max(...ratios);
}

/** The table of targets in Markdown: what was measured, the target, and whether it is reached. */
export function targetsTable(results: Results): string {
  return table(
    ["", "measured", "target", ""],
    GOALS.map((goal) => {
      const value = goal.read(results);
      const unit = goal.unit ? ` ${goal.unit}` : "";
      const target = "least" in goal.bound ? `≥ ${shown(goal.bound.least)}` : `≤ ${shown(goal.bound.most)}`;
      return [goal.name, `${shown(value)}${unit}`, `${target}${unit}`, verdict(goal, value)];
    }),
  );
}

function verdict({ bound }: Goal, value: number | undefined): string {
  if (value === undefined) return "not measured";
  return ("least" in bound ? value >= bound.least : value <= bound.most) ? "reached" : "not reached";
}

/** Ratios need two digits after the point, larger figures none. */
function shown(value: number | undefined): string {
  return figure(value, value !== undefined && Math.abs(value) < 20 ? 2 : 0);
}

function minus(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a - b;
}
