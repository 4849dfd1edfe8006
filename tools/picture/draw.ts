/**
 * Draws the run of `run.json` as a moving picture for the README: `npm run build:picture` writes docs/images/run.svg.
 * The run is real: the service answered this question of GSM8K (MIT) with recorded answers of gpt-4o-mini,
 * gemini-1.5-flash and gpt-4o, which came from local servers after 1.4, 1.15 and 2.3 seconds.
 */
import { readFileSync, writeFileSync } from "node:fs";

interface Run {
  readonly prompt: readonly string[];
  readonly answer: string;
  readonly credits: number;
  readonly latency_ms: number;
  readonly steps: readonly Step[];
}

interface Step {
  readonly id: number;
  readonly kind: string;
  readonly role: string;
  readonly started_ms: number;
  readonly duration_ms: number;
  /** What the model answered. Absent: a step of the service. */
  readonly answer?: string;
}

/** Seconds after which the picture begins again. The run takes less; the rest is time to read. */
const CYCLE_S = 10;
/** Seconds before the request is sent. */
const BEFORE_S = 1;
const WIDTH = 860;
/** Where the bars begin and end, in pixels, and how far apart they are. */
const BARS = { left: 220, right: 740, top: 128, gap: 44 };

const STYLE = `
    text { fill: #13191b } .soft { fill: #566167; font-size: 13px } .mono { font-family: ui-monospace, monospace }
    .card { fill: #f6f7f7; stroke: #e1e5e5 } .fast { fill: #9fcdc8 } .strong { fill: #0f7f7c }
    .note { fill: #7b5000 } .good { fill: #1b6b3a; font-weight: 600 } .line { stroke: #c98a12; stroke-dasharray: 4 4 }
    @media (prefers-color-scheme: dark) {
      text { fill: #e8ecec } .soft { fill: #9ba6ab } .card { fill: #14181a; stroke: #272e31 } .fast { fill: #2c6d69 }
      .strong { fill: #4db8af } .note { fill: #e8bb5e } .good { fill: #74d29a }
    }`;

/** Draws a run. @returns an SVG that moves without a script, in light and dark */
export function draw({ prompt, answer, credits, latency_ms: totalMs, steps }: Run): string {
  const models = steps.filter((step) => step.answer !== undefined);
  const vote = steps.find(({ kind }) => kind === "vote");
  const bottom = BARS.top + models.length * BARS.gap;
  const rules: string[] = [];
  /** Adds keyframes. @returns the class of the element that moves by them */
  const moving = (frames: string) => {
    const name = `m${rules.length}`;
    rules.push(`@keyframes ${name} { ${frames} } .${name} { animation: ${name} ${CYCLE_S}s linear infinite }`);
    return name;
  };
  /** Shows an element from a time of the run on. */
  const from = (ms: number) => {
    const at = percent(ms);
    return moving(`0%, ${at}% { opacity: 0 } ${(at + 1).toFixed(1)}%, 100% { opacity: 1 }`);
  };
  const bars = models.map((step, i) => {
    const y = BARS.top + i * BARS.gap;
    const [begunMs, endedMs] = [step.started_ms, step.started_ms + step.duration_ms];
    const [x, end] = [xOf(begunMs, totalMs), xOf(endedMs, totalMs)];
    const grown = moving(
      `0%, ${percent(begunMs)}% { transform: scaleX(0) } ${percent(endedMs)}%, 100% { transform: none }`,
    );
    const place = `x="${x}" y="${y}" width="${end - x}" height="24" rx="4" style="transform-origin: ${x}px 0"`;
    return `
  <text x="36" y="${y + 17}">${step.role} model</text>
  <rect class="${step.role} ${grown}" ${place}/>
  <text class="mono ${from(endedMs)}" x="${end + 10}" y="${y + 17}">${step.answer}</text>`;
  });
  const votedMs = vote ? vote.started_ms + vote.duration_ms : 0;
  const voted = xOf(votedMs, totalMs);
  const why = "two drafts disagree, so a strong model is asked";
  const split = `
  <g class="${from(votedMs)}">
    <path class="line" d="M${voted} ${BARS.top - 10}V${bottom - 56}"/>
    <text class="note" x="${voted + 48}" y="${BARS.top + 39}">${why}</text>
  </g>`;
  const atEnd = from(totalMs);
  const cost = `${credits} credits, ${(totalMs / 1000).toFixed(1)} s`;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${bottom + 68}" role="img" aria-labelledby="t d"
  font-family="system-ui, sans-serif" font-size="14">
  <title id="t">One request, several models, one answer</title>
  <desc id="d">Two fast models answer a question and disagree. The service asks a strong model, and returns the answer
    that two of three give, as JSON that is valid against the caller's schema.</desc>
  <style>${STYLE}
    @media (prefers-reduced-motion: no-preference) {
      ${rules.join("\n      ")}
    }
  </style>
  <rect class="card" x="12" y="12" width="${WIDTH - 24}" height="${bottom + 44}" rx="8"/>
  <text class="soft mono" x="36" y="42">POST /v1/generate</text>
${prompt.map((line, i) => `  <text x="36" y="${68 + i * 22}">${line}</text>`).join("\n")}${bars.join("")}${split}
  <g class="${atEnd}">
    <text class="good mono" x="36" y="${bottom + 32}">{ "answer": "${answer}" }</text>
    <text class="soft" x="${BARS.left}" y="${bottom + 32}">valid against the schema · ${cost}</text>
  </g>
</svg>
`;
}

/** The place of a time of the run, in pixels. */
function xOf(ms: number, totalMs: number): number {
  return Math.round(BARS.left + ((BARS.right - BARS.left) * ms) / totalMs);
}

/** A time of the run as a percentage of the cycle. */
function percent(ms: number): number {
  return Math.round((BEFORE_S + ms / 1000) * (1000 / CYCLE_S)) / 10;
}

export const RUN = new URL("run.json", import.meta.url);
export const PICTURE = new URL("../../docs/images/run.svg", import.meta.url);

if (import.meta.main) {
  writeFileSync(PICTURE, draw(JSON.parse(readFileSync(RUN, "utf8"))));
}
