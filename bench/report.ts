import { arch, platform } from "node:os";
import { EVENTS } from "./answer.ts";
import type { Load } from "./load.ts";
import { cores, pinned } from "./server.ts";
import type { Mode } from "./targets.ts";

export interface Phase extends Load {
  name: "upstream" | "bare relay" | "Chorus" | "Portkey";
  mode: Mode;
  /** Processor time of the server for each answer, in microseconds. */
  cpuMicros: number | undefined;
}

/** Ratios that the project holds itself to. */
const TARGETS = [
  { mode: "unary", other: "bare relay", least: 0.3 },
  { mode: "unary", other: "Portkey", least: 4 },
  { mode: "sse", other: "bare relay", least: 0.15 },
  { mode: "sse", other: "Portkey", least: undefined },
] as const;

/** The report as Markdown: what was measured and how, medians of the rounds, ratios. */
export function report(phases: Phase[], how: { rounds: number; connections: number; seconds: number }): string {
  const row = (mode: Mode, name: Phase["name"]) => {
    const mine = phases.filter((phase) => phase.mode === mode && phase.name === name);
    const middle = (pick: (phase: Phase) => number | undefined) => median(mine.map(pick));
    return {
      rate: middle((phase) => phase.rate),
      p50: middle((phase) => phase.p50),
      p99: middle((phase) => phase.p99),
      cpu: middle((phase) => phase.cpuMicros),
    };
  };
  const table = (mode: Mode) =>
    (["bare relay", "Chorus", "Portkey", "upstream"] as const).map((name) => {
      const { rate, p50, p99, cpu } = row(mode, name);
      const label = name === "upstream" ? "upstream alone" : name;
      const events = mode === "sse" ? [whole(rate * EVENTS)] : [];
      return cells(
        label,
        whole(rate),
        ...events,
        p50.toFixed(1),
        p99.toFixed(1),
        cpu >= 0 ? cpu.toFixed(0) : "–",
        share(rate * cpu),
      );
    });
  const ratios = TARGETS.map(({ mode, other, least }) => {
    const [chorus, rival] = [row(mode, "Chorus"), row(mode, other)];
    const rate = chorus.rate / rival.rate;
    const cpu = rival.cpu / chorus.cpu;
    const verdict = least === undefined ? "–" : `${least} ${rate >= least ? "(met)" : "(missed)"}`;
    return cells(`${mode}: Chorus ÷ ${other}`, rate.toFixed(2), cpu >= 0 ? cpu.toFixed(2) : "–", verdict);
  });
  return `# Speed

Measured on ${new Date().toISOString().slice(0, 10)} with Node ${process.versions.node} on ${cores} cores (${platform()} ${arch()}), by \`npm run bench\`.

| Chorus against | rate | work for the same processor time | target |
| --- | --: | --: | --: |
${ratios.join("\n")}

Unary, \`POST /v1/generate\`:

| | answers/s | p50 ms | p99 ms | CPU µs per answer | of one core |
| --- | --: | --: | --: | --: | --: |
${table("unary").join("\n")}

Server-sent events, \`POST /v1/generate:stream\`, ${EVENTS} events a stream:

| | streams/s | events/s | p50 ms | p99 ms | CPU µs per stream | of one core |
| --- | --: | --: | --: | --: | --: | --: |
${table("sse").join("\n")}

- Each figure is the median of ${how.rounds} rounds of ${how.seconds} s, after a warm-up; the contestants take turns, in changing order. ${how.connections} connections, each
  with one request at a time.
- ${pinned ? "The server under test has one core for itself; load generator, upstream and Postgres share the rest." : "No core could be set apart for the server under test, so that all processes share them all."}
- The upstream is static: an OpenAI chat completion, or a stream of ${EVENTS} content events that leaves in one write. What it does alone, with the
  load generator on the same core, is the most that could be measured.
- The bare relay is \`node:http\` and undici's \`Pool\`. Unary, it passes the bytes through; as a stream, it parses the upstream's events and
  writes its own, one write for each.
- Chorus is the whole service with its embedded Postgres: key, limits and credit in a durable lease, validation, token count, charge and record of each answer before it is sent.
- Portkey is \`@portkey-ai/gateway\` 1.15.2 without keys, limits or billing.
- Every answer was checked for status, framing and end, and one in a hundred for its whole text. None was wrong.
`;
}

function cells(...values: string[]): string {
  return `| ${values.join(" | ")} |`;
}

function whole(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function share(micros: number): string {
  return micros >= 0 ? `${(micros / 10_000).toFixed(0)} %` : "–";
}

function median(values: Array<number | undefined>): number {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}
