import { arch, platform } from "node:os";
import type { AdmissionLoad } from "./admission.ts";
import { SCRIPTS } from "./answer.ts";
import type { ConsoleLoad } from "./console.ts";
import { divide, namesOf, type Results, rowOf } from "./figures.ts";
import type { MemoryUse } from "./memory.ts";
import { methodText } from "./method.ts";
import type { Options } from "./options.ts";
import { PANEL } from "./panel.ts";
import { CONNECTIONS, type Kind, LATENCY_RATE, PACED_RATE, PACED_STREAMS, WORKERS_STREAMS } from "./rounds.ts";
import { cores } from "./server.ts";
import { figure, percent, table } from "./tables.ts";
import { targetsTable } from "./targets.ts";

/** The report in Markdown: targets, medians of the rounds, and the method. Leaves out the parts that did not run. */
export function report(results: Results, options: Options): string {
  const sections = [
    `# Speed

Measured on ${new Date().toISOString().slice(0, 10)} with Node ${process.versions.node} on ${cores} cores \
(${platform()} ${arch()}), by \`npm run bench\`.

"A ÷ B" is the processor time of B for one item divided by that of A: how much more A does in the same time. Larger is
better for A. "Time of A / time of B" is the opposite: smaller is better for A.`,
    targetsTable(results),
    ...loadSections(results),
    ...rpcSections(results),
    ...doorsSections(results),
    runsSection(results),
    ...workersSections(results),
    panelSection(results),
    memorySection(results.memory),
    admissionSection(results.admission),
    consoleSection(results.console),
    methodText(options),
  ];
  return `${sections.filter((section) => section !== "").join("\n\n")}\n`;
}

function loadSections(results: Results): string[] {
  const { burst, paced } = SCRIPTS;
  return [
    section("Unary, `POST /v1/generate`:", loadTable(results, "unary", "answer")),
    section(
      `Burst: streams of ${burst.tokens.length} tokens that the upstream sends with one write:`,
      loadTable(results, "burst", "stream"),
    ),
    section(
      `Paced: ${PACED_STREAMS} streams at once of ${paced.tokens.length} tokens, one each ${paced.intervalMs} ms:`,
      loadTable(results, "paced", "token"),
    ),
    section(
      `Latency at ${LATENCY_RATE} requests/s, unary, in milliseconds, and the difference to the bare relay:`,
      latencyTable(results),
    ),
  ];
}

/** @param item what is counted: an answer, a stream or a token */
function loadTable(results: Results, kind: Kind, item: string): string {
  const timed = kind === "unary" || kind === "burst";
  const relay = rowOf(results, kind, "bare relay").cpuMicros;
  const rows = namesOf(results, kind).map((name) => {
    const { rate, p50, p99, cpuMicros, driverShare } = rowOf(results, kind, name);
    const times = timed ? [figure(p50, 1), figure(p99, 1)] : [percent(divide(rate, PACED_RATE))];
    const busy = rate === undefined || cpuMicros === undefined ? undefined : (rate * cpuMicros) / 1e6;
    const cpu = figure(cpuMicros, timed ? 0 : 1);
    return [
      name,
      figure(rate),
      ...times,
      cpu,
      figure(divide(relay, cpuMicros), 2),
      percent(busy),
      percent(driverShare),
    ];
  });
  const times = timed ? ["p50 ms", "p99 ms"] : ["of the pace"];
  const rates = [`${item}s/s`, ...times, `CPU µs per ${item}`, "÷ bare relay"];
  const head = ["", ...rates, "share of a core", "load + upstream"];
  return rows.length === 0 ? "" : table(head, rows);
}

function latencyTable(results: Results): string {
  const relay = rowOf(results, "latency", "bare relay");
  const rows = namesOf(results, "latency").map((name) => {
    const { p50, p99 } = rowOf(results, "latency", name);
    const added = [difference(p50, relay.p50), difference(p99, relay.p99)];
    return [name, figure(p50, 1), figure(p99, 1), ...added.map((value) => figure(value, 1))];
  });
  return rows.length === 0 ? "" : table(["", "p50", "p99", "added p50", "added p99"], rows);
}

function rpcSections(results: Results): string[] {
  const make = (kind: Kind, item: string, base: string) => {
    const reference = rowOf(results, kind, base).cpuMicros;
    const isPaced = kind === "rpc paced";
    const rows = namesOf(results, kind).map((name) => {
      const { rate, cpuMicros, driverShare } = rowOf(results, kind, name);
      const ofPace = isPaced ? [percent(divide(rate, PACED_RATE))] : [];
      const cpu = [figure(cpuMicros, 1), figure(divide(cpuMicros, reference), 2)];
      return [name, figure(rate), ...ofPace, ...cpu, percent(driverShare)];
    });
    const pace = isPaced ? ["of the pace"] : [];
    const head = ["", `${item}s/s`, ...pace, `CPU µs per ${item}`, `time / time of ${base}`, "load + upstream"];
    return rows.length === 0 ? "" : table(head, rows);
  };
  const streams = `${PACED_STREAMS} paced streams at once`;
  return [
    section(
      "RPC, unary, `Generate`. With the same messages, the echo is connect-node, bare is `node:http` and `node:http2`:",
      make("rpc unary", "answer", "REST"),
    ),
    section(`RPC, ${streams}, \`StreamGenerate\` on HTTP/2:`, make("rpc paced", "token", "SSE")),
  ];
}

function doorsSections(results: Results): string[] {
  const make = (kind: Kind, item: string) => {
    const native = rowOf(results, kind, "REST").cpuMicros;
    const rows = namesOf(results, kind).map((name) => {
      const { rate, p50, cpuMicros } = rowOf(results, kind, name);
      return [name, figure(rate), figure(p50, 1), figure(cpuMicros, 1), figure(divide(cpuMicros, native), 3)];
    });
    const head = ["", `${item}s/s`, "p50 ms", `CPU µs per ${item}`, "time / time of REST"];
    return rows.length === 0 ? "" : table(head, rows);
  };
  return [
    section("Doors, whole answers of 60 tokens:", make("doors unary", "answer")),
    section("Doors, the same with four tools:", make("doors tools", "answer")),
    section("Doors, streams of 60 tokens that the upstream sends with one write:", make("doors burst", "stream")),
    section(`Doors, ${PACED_STREAMS} paced streams at once:`, make("doors paced", "token")),
  ];
}

function runsSection(results: Results): string {
  const off = rowOf(results, "runs", "Runs off").cpuMicros;
  const rows = namesOf(results, "runs").map((name) => {
    const { rate, p50, p99, cpuMicros } = rowOf(results, "runs", name);
    return [
      name,
      figure(rate),
      figure(p50, 1),
      figure(p99, 1),
      figure(cpuMicros, 1),
      figure(divide(cpuMicros, off), 3),
    ];
  });
  const head = ["", "answers/s", "p50 ms", "p99 ms", "CPU µs per answer", "time / time without runs"];
  return section("Unary, with `CHORUS_RUNS` on and off:", rows.length === 0 ? "" : table(head, rows));
}

function workersSections(results: Results): string[] {
  const make = (kind: Kind, item: string) => {
    const names = namesOf(results, kind);
    const one = rowOf(results, kind, names[0] ?? "").cpuMicros;
    const rows = names.map((name) => {
      const { rate, cpuMicros, driverShare } = rowOf(results, kind, name);
      return [name, figure(rate), figure(cpuMicros, 1), figure(divide(cpuMicros, one), 2), percent(driverShare)];
    });
    const head = ["", `${item}s/s`, `CPU µs per ${item}`, "time / time of 1 worker", "load + upstream"];
    return rows.length === 0 ? "" : table(head, rows);
  };
  return [
    section(
      `Workers, unary, ${CONNECTIONS} connections for each. All share one core, so they share its cache, too:`,
      make("workers unary", "answer"),
    ),
    section(`Workers, ${WORKERS_STREAMS} paced streams in all:`, make("workers paced", "token")),
  ];
}

function panelSection(results: Results): string {
  const rows = namesOf(results, "panel").map((name) => {
    const { rate, p50, cpuMicros, allocatedBytes } = rowOf(results, "panel", name);
    const of = (other: string, calls = 1) => divide(cpuMicros, times(rowOf(results, "panel", other).cpuMicros, calls));
    const calls = { [PANEL.agree]: 3, [PANEL.differ]: 4 }[name] ?? 1;
    return [
      name,
      figure(rate),
      figure(p50, 1),
      figure(cpuMicros),
      figure(of(PANEL.one), 2),
      figure(of(PANEL.relay, calls), 2),
      figure(divide(allocatedBytes, 1_024)),
    ];
  });
  if (rows.length === 0) return "";
  const cpu = ["CPU µs per answer", "time / time of one model", "time / time of as many relayed calls"];
  const waiting = results.panelMemory?.bytesPerStream;
  return section(
    "Panels of three models, closed questions, effort `high`:",
    `${table(["", "answers/s", "p50 ms", ...cpu, "KB allocated per answer"], rows)}

A panel that waits for its drafts holds ${figure(divide(waiting, 1_024))} KB of resident memory.`,
  );
}

function memorySection(memory: MemoryUse[]): string {
  if (memory.length === 0) return "";
  const rows = memory.map(({ name, streams, opened, bytesPerStream }) => [
    name,
    figure(streams),
    figure(opened),
    figure(bytesPerStream === undefined ? undefined : bytesPerStream / 1_024, 1),
  ]);
  return section(
    "Memory: streams that stay open and silent after one token:",
    table(["", "streams", "opened", "resident KB per stream"], rows),
  );
}

function admissionSection(loads: AdmissionLoad[]): string {
  if (loads.length === 0) return "";
  const rows = loads.map(({ name, rate, p50, p99, batch, serviceMicros, postgresMicros, walBytes }) => [
    name,
    figure(rate),
    figure(p50, 1),
    figure(p99, 1),
    figure(batch, 1),
    `${figure(serviceMicros)} + ${figure(postgresMicros)}`,
    figure(walBytes),
  ]);
  const cpu = "CPU µs per request: service + Postgres";
  return section(
    "Admission and settlement without models and transport, with every kind of limit and durable commits. Both\n" +
      "share one core with Postgres:",
    table(["", "requests/s", "p50 ms", "p99 ms", "batch", cpu, "WAL bytes"], rows),
  );
}

function consoleSection(page: ConsoleLoad | undefined): string {
  if (!page) return "";
  const size = `The scripts of the owner's pages have ${figure(page.scriptBytes)} bytes, gzipped.`;
  const time =
    page.loadMs === undefined
      ? "Its load time was not measured, because Chromium was not found."
      : `Its first page loads in ${figure(page.loadMs)} ms in Chromium with an empty cache.`;
  return `${size}\n${time}`;
}

function section(title: string, content: string): string {
  return content === "" ? "" : `${title}\n\n${content}`;
}

function difference(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || b === undefined ? undefined : a - b;
}

function times(a: number | undefined, factor: number): number | undefined {
  return a === undefined ? undefined : a * factor;
}
