import { useEffect, useRef, useState } from "preact/hooks";
import { duration, words } from "../format.ts";
import type { Step } from "../playground/steps.ts";
import { linksOf } from "./plan.ts";

interface Props {
  readonly steps: readonly Step[];
  /** Length of the drawing, in milliseconds. */
  readonly length: number;
  /** Time at which the steps go on that have not ended, in milliseconds; undefined when the request has ended. */
  readonly now: number | undefined;
  /** What did each step, by its key, such as the names of models. */
  readonly who: (step: Step) => string;
}

/** Sizes in pixels: a row, its bar, and where the bar begins below the words of the row. */
const ROW = 46;
const BAR = { height: 12, top: 22 };
const EDGE = 1;

/**
 * The steps of an answer over time, with arrows from drafts to what was made of them. Screen readers read the list of
 * steps instead.
 */
export function PlanDrawing({ steps, length, now, who }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  const right = Math.max(1, width - 2 * EDGE);
  const x = (ms: number) => EDGE + (Math.min(length, ms) / length) * right;
  const endOf = ({ startedMs, durationMs }: Step) => startedMs + (durationMs ?? (now ?? length) - startedMs);
  return (
    <div class="plan" ref={box}>
      <svg width={width} height={steps.length * ROW + 4} aria-hidden="true">
        {linksOf(steps).map(({ from, to }) => {
          const [source, target] = [steps[from], steps[to]];
          if (!source || !target) return null;
          return <Arrow key={`${from} ${to}`} from={[x(endOf(source)), from]} to={[x(target.startedMs), to]} />;
        })}
        {steps.map((step, at) => {
          const begin = x(step.startedMs);
          const barWidth = Math.max(3, x(endOf(step)) - begin);
          const y = at * ROW;
          const isLate = begin > width * 0.55;
          const state = step.durationMs === undefined ? "running" : step.outcome;
          return (
            <g key={step.key} class={state}>
              <text x={isLate ? width - EDGE : begin} y={y + 14} text-anchor={isLate ? "end" : "start"}>
                <tspan class="kind">{words(step.kind)}</tspan> {who(step)} · {took(step, now)}
              </text>
              <rect
                x={Math.min(begin, width - EDGE - barWidth)}
                y={y + BAR.top}
                width={barWidth}
                height={BAR.height}
                rx={3}
              />
            </g>
          );
        })}
      </svg>
      <p class="scale soft" aria-hidden="true">
        <span>0</span>
        <span>{duration(length)}</span>
      </p>
    </div>
  );
}

type Place = readonly [x: number, row: number];

function Arrow({ from: [x1, row1], to: [x2, row2] }: { from: Place; to: Place }) {
  const y1 = row1 * ROW + BAR.top + BAR.height / 2;
  const y2 = row2 * ROW + BAR.top + BAR.height / 2;
  return <path d={`M${x1} ${y1} C${x1 + 14} ${y1} ${x2 - 14} ${y2} ${x2} ${y2}`} />;
}

function took({ startedMs, durationMs, outcome }: Step, now: number | undefined): string {
  if (durationMs === undefined)
    return now === undefined ? "not ended" : `${duration(Math.max(0, now - startedMs))} so far`;
  return outcome && outcome !== "ok" ? `${duration(durationMs)}, ${outcome}` : duration(durationMs);
}
