import { arch, platform } from "node:os";
import { EVENTS } from "./answer.ts";
import type { ConsoleLoad } from "./console.ts";
import type { LeaseLoad } from "./leases.ts";
import type { Load } from "./load.ts";
import { cores, pinned } from "./server.ts";
import type { Mode } from "./targets.ts";

export interface Phase extends Load {
  name: "upstream" | "bare relay" | "Chorus" | "Chorus ungoverned" | "Portkey";
  /** `paced`: unary at an even rate that all can keep up with. */
  mode: Mode | "paced";
  /** Processor time of the server for each answer, in microseconds. */
  cpuMicros: number | undefined;
}

/** Ratios that the project holds itself to. */
const TARGETS = [
  { mode: "unary", other: "bare relay", least: 0.3 },
  { mode: "unary", other: "Portkey", least: 4 },
  { mode: "sse", other: "bare relay", least: 0.15 },
  { mode: "sse", other: "Portkey", least: undefined },
  { mode: "unary", other: "Chorus ungoverned", least: 0.8 },
  { mode: "sse", other: "Chorus ungoverned", least: 0.8 },
] as const;
/** Bytes of script that the console may have, gzipped. */
const MOST_SCRIPT = 150_000;
/** Leases taken and settled a second by one workspace, with Postgres on the same core. */
const LEAST_LEASES = 4_000;

/** The report as Markdown: what was measured and how, medians of the rounds, ratios. */
export function report(
  phases: Phase[],
  leases: LeaseLoad[],
  page: ConsoleLoad,
  how: { rounds: number; connections: number; seconds: number; perSecond: number },
): string {
  const row = (mode: Phase["mode"], name: Phase["name"]) => {
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
    (["bare relay", "Chorus", "Chorus ungoverned", "Portkey", "upstream"] as const).map((name) => {
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
  const paced = (["bare relay", "Chorus", "Chorus ungoverned", "Portkey"] as const).map((name) => {
    const { p50, p99 } = row("paced", name);
    const relay = row("paced", "bare relay");
    return cells(name, p50.toFixed(1), p99.toFixed(1), (p50 - relay.p50).toFixed(1), (p99 - relay.p99).toFixed(1));
  });
  const most = Math.max(...leases.map(({ rate }) => rate));
  return `# Speed

Measured on ${new Date().toISOString().slice(0, 10)} with Node ${process.versions.node} on ${cores} cores (${platform()} ${arch()}), by \`npm run bench\`.

| Chorus against | rate | work for the same processor time | target |
| --- | --: | --: | --: |
${ratios.join("\n")}

Leases of one workspace, taken and settled on one core that Postgres shares: up to ${whole(most)} a second, target ${whole(LEAST_LEASES)} (${most >= LEAST_LEASES ? "met" : "missed"}).

Unary, \`POST /v1/generate\`:

| | answers/s | p50 ms | p99 ms | CPU µs per answer | of one core |
| --- | --: | --: | --: | --: | --: |
${table("unary").join("\n")}

Server-sent events, \`POST /v1/generate:stream\`, ${EVENTS} events a stream:

| | streams/s | events/s | p50 ms | p99 ms | CPU µs per stream | of one core |
| --- | --: | --: | --: | --: | --: | --: |
${table("sse").join("\n")}

Time of an answer at ${how.perSecond} requests/s, unary, in milliseconds, and what it adds to the bare relay's:

| | p50 | p99 | added p50 | added p99 |
| --- | --: | --: | --: | --: |
${paced.join("\n")}

Leases alone, one workspace with every kind of limit, durable commits, the service's side and Postgres together on one core:

| at once | pairs/s | p50 ms | p99 ms | batch | CPU µs of a pair: service + Postgres | bytes of log |
| --: | --: | --: | --: | --: | --: | --: |
${leases.map(leaseRow).join("\n")}

The console has ${whole(page.scriptBytes)} bytes of script, gzipped (at most ${whole(MOST_SCRIPT)}). ${
    page.loadMs === undefined
      ? "There was no Chromium to measure its first load."
      : `Its first page is loaded after ${page.loadMs.toFixed(0)} ms in Chromium, with an empty cache.`
  }

- Each figure is the median of ${how.rounds} rounds of ${how.seconds} s, after a warm-up; the contestants take turns, in changing order. ${how.connections} connections, each
  with one request at a time.
- ${pinned ? "The server under test has one core for itself; load generator, upstream and Postgres share the rest." : "No core could be set apart for the server under test, so that all processes share them all."}
- The upstream is static: an OpenAI chat completion, or a stream of ${EVENTS} content events that leaves in one write. What it does alone, with the
  load generator on the same core, is the most that could be measured.
- The bare relay is \`node:http\` and undici's \`Pool\`. Unary, it passes the bytes through; as a stream, it parses the upstream's events and
  writes its own, one write for each.
- Chorus is the whole service with its embedded Postgres: key, limits and credit in a durable lease, validation, token count, charge and record of each answer before it is sent.
- Chorus ungoverned is the same code without key, lease and charge, and without a database.
- Portkey is \`@portkey-ai/gateway\` 1.15.2 without keys, limits or billing.
- Every answer was checked for status, framing and end, and one in a hundred for its whole text. None was wrong.
`;
}

function leaseRow({ concurrency, rate, p50, p99, batch, serviceMicros, postgresMicros, walBytes }: LeaseLoad): string {
  const cpu = `${serviceMicros.toFixed(0)} + ${postgresMicros.toFixed(0)}`;
  return cells(
    String(concurrency),
    whole(rate),
    p50.toFixed(1),
    p99.toFixed(1),
    batch.toFixed(1),
    cpu,
    whole(walBytes),
  );
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
