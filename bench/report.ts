import { arch, platform } from "node:os";
import { EVENTS } from "./answer.ts";
import type { ConsoleLoad } from "./console.ts";
import type { LeaseLoad } from "./leases.ts";
import type { Load } from "./load.ts";
import { cores, pinned } from "./server.ts";
import type { Mode } from "./targets.ts";

export interface Phase extends Load {
  name: "upstream" | "bare relay" | "Chorus" | "Chorus ungoverned" | "Portkey";
  /** `paced`: unary at a constant rate below the maximum of all servers. */
  mode: Mode | "paced";
  /** CPU time of the server per response, in microseconds. */
  cpuMicros: number | undefined;
}

/** How the figures were measured. */
interface Method {
  rounds: number;
  connections: number;
  /** Length of a round. */
  seconds: number;
  /** Request rate of the mode `paced`. */
  perSecond: number;
}

/** Target ratios of the project. */
const TARGETS = [
  { mode: "unary", other: "bare relay", least: 0.3 },
  { mode: "unary", other: "Portkey", least: 4 },
  { mode: "sse", other: "bare relay", least: 0.15 },
  { mode: "sse", other: "Portkey", least: undefined },
  { mode: "unary", other: "Chorus ungoverned", least: 0.8 },
  { mode: "sse", other: "Chorus ungoverned", least: 0.8 },
] as const;
/** Most bytes of the console's scripts, gzipped. */
const MOST_SCRIPT = 150_000;
/** Fewest leases per second of one workspace, with Postgres on the same core. */
const LEAST_LEASES = 4_000;

/** The report in Markdown: ratios, medians of the rounds, and the method. */
export function report(phases: Phase[], leases: LeaseLoad[], page: ConsoleLoad, how: Method): string {
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
      const events = mode === "sse" ? [rounded(rate * EVENTS)] : [];
      return cells(
        label,
        rounded(rate),
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

Measured on ${new Date().toISOString().slice(0, 10)} with Node ${process.versions.node} on ${cores} cores \
(${platform()} ${arch()}), by \`npm run bench\`.

| Chorus against | rate | work per CPU time | target |
| --- | --: | --: | --: |
${ratios.join("\n")}

Leases of one workspace, opened and settled on one core together with Postgres: up to ${rounded(most)} per second,
target ${rounded(LEAST_LEASES)} (${most >= LEAST_LEASES ? "met" : "missed"}).

Unary, \`POST /v1/generate\`:

| | answers/s | p50 ms | p99 ms | CPU µs per answer | share of one core |
| --- | --: | --: | --: | --: | --: |
${table("unary").join("\n")}

Server-sent events, \`POST /v1/generate:stream\`, ${EVENTS} events per stream:

| | streams/s | events/s | p50 ms | p99 ms | CPU µs per stream | share of one core |
| --- | --: | --: | --: | --: | --: | --: |
${table("sse").join("\n")}

Latency at ${how.perSecond} requests/s, unary, in milliseconds, and the difference to the bare relay:

| | p50 | p99 | added p50 | added p99 |
| --- | --: | --: | --: | --: |
${paced.join("\n")}

Leases of one workspace with every kind of limit and durable commits. Admission and Postgres share one core:

| callers | leases/s | p50 ms | p99 ms | batch | CPU µs per lease: service + Postgres | WAL bytes |
| --: | --: | --: | --: | --: | --: | --: |
${leases.map(leaseRow).join("\n")}

${consoleText(page)}

${methodText(how)}
`;
}

function consoleText({ scriptBytes, loadMs }: ConsoleLoad): string {
  const size = `The scripts of the console have ${rounded(scriptBytes)} bytes, gzipped (at most ${rounded(MOST_SCRIPT)}).`;
  const time =
    loadMs === undefined
      ? "Its load time was not measured, because Chromium was not found."
      : `Its first page loads in ${loadMs.toFixed(0)} ms in Chromium with an empty cache.`;
  return `${size}\n${time}`;
}

function methodText({ rounds, connections, seconds }: Method): string {
  const placement = pinned
    ? "The server under test has a core to itself. Load generator, upstream and Postgres share the other cores."
    : "All processes share all cores, because the server under test could not be pinned to a core.";
  const median = `median of ${rounds} rounds of ${seconds} s after a warm-up`;
  return `- Each figure is the ${median}. The servers take turns in changing order.
  There are ${connections} connections, each with one request at a time.
- ${placement}
- The upstream is static: an OpenAI chat completion, or ${EVENTS} content events that are sent with one write.
  Measured alone, with the load generator on the same core, it gives the upper limit of the method.
- The bare relay is \`node:http\` with undici's \`Pool\`. Unary, it passes the bytes through. As a stream, it parses the
  events of the upstream and writes its own, one write per event.
- Chorus is the complete service with its embedded Postgres: key, limits and credit in a durable lease, validation,
  token count, and charge and record of each answer before it is sent.
- Chorus ungoverned is the same code without key, lease, charge and database.
- Portkey is \`@portkey-ai/gateway\` 1.15.2 without keys, limits or billing.
- Status, framing and end of every response were checked, and the complete text of one in a hundred. None was wrong.`;
}

function leaseRow({ concurrency, rate, p50, p99, batch, serviceMicros, postgresMicros, walBytes }: LeaseLoad): string {
  const cpu = `${serviceMicros.toFixed(0)} + ${postgresMicros.toFixed(0)}`;
  return cells(
    String(concurrency),
    rounded(rate),
    p50.toFixed(1),
    p99.toFixed(1),
    batch.toFixed(1),
    cpu,
    rounded(walBytes),
  );
}

function cells(...values: string[]): string {
  return `| ${values.join(" | ")} |`;
}

function rounded(value: number): string {
  return Math.round(value).toLocaleString("en");
}

function share(micros: number): string {
  return micros >= 0 ? `${(micros / 10_000).toFixed(0)} %` : "–";
}

function median(values: Array<number | undefined>): number {
  const sorted = values.filter((value) => value !== undefined).sort((a, b) => a - b);
  return sorted[Math.floor((sorted.length - 1) / 2)] ?? Number.NaN;
}
