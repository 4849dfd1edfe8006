import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot, { type AlignedData, type Options } from "uplot";
import { themeChanges } from "../shell/theme.ts";
import { ChartTable } from "./chart-table.tsx";

export interface ChartSeries {
  readonly label: string;
  /** One value per point; null if there is none. */
  readonly values: readonly (number | null)[];
  readonly tone: "accent" | "second" | "third" | "bad";
}

export interface ChartProps {
  readonly title: string;
  /** Sum of the whole period, as text. */
  readonly summary: string;
  /** Starts of the points, in seconds. */
  readonly at: readonly number[];
  /** Stacked bars with the first series at the bottom, or lines. */
  readonly kind: "bars" | "lines";
  readonly series: readonly ChartSeries[];
  /** Formats a value. */
  readonly write: (value: number) => string;
  /** Formats a value for the axis. */
  readonly axis: (value: number) => string;
}

const HEIGHT = 190;

/** A chart, with its values in a table below, which screen readers can read. */
export function Chart(props: ChartProps) {
  const { title, summary, at, series, write } = props;
  const box = useRef<HTMLDivElement>(null);
  const [under, setUnder] = useState<number | null>(null);
  const [theme, setTheme] = useState(0);
  useEffect(() => {
    const redraw = () => setTheme((now) => now + 1);
    themeChanges.addEventListener("change", redraw);
    return () => themeChanges.removeEventListener("change", redraw);
  }, []);

  const isEmpty = series.every(({ values }) => values.every((value) => value === null));
  const drawn = JSON.stringify([at, series]);
  // Draws again when the data (`drawn`) or the colours (`theme`) change.
  useEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const plot = new UPlot(optionsFor(props, element, setUnder), stack(props), element);
    const observer = new ResizeObserver(() => plot.setSize({ width: element.clientWidth, height: HEIGHT }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [drawn, theme]);

  const start = under === null ? undefined : at[under];
  const valuesAt = (point: number) =>
    series.map((each) => `${each.label} ${writeOr(each.values[point], write)}`).join(" · ");
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        {series.length > 1 && (
          <ul class="legend">
            {series.map((one) => (
              <li key={one.label} class={one.tone}>
                {one.label}
              </li>
            ))}
          </ul>
        )}
        <p class="summary">{start === undefined || under === null ? summary : `${label(start)}: ${valuesAt(under)}`}</p>
      </figcaption>
      {isEmpty ? (
        <div class="plot" />
      ) : (
        <>
          <div class="plot" ref={box} aria-hidden="true" />
          <ChartTable {...props} label={label} />
        </>
      )}
    </figure>
  );
}

function writeOr(value: number | null | undefined, write: (value: number) => string): string {
  return value === null || value === undefined ? "–" : write(value);
}

/** Data of stacked bars: each bar is drawn from zero to its top, so the tallest has to be drawn first. */
function stack({ at, series, kind }: ChartProps): AlignedData {
  if (kind === "lines") return [[...at], ...series.map(({ values }) => [...values])];
  const tops: number[][] = [];
  for (const { values } of series) {
    const below = tops.at(-1);
    tops.push(values.map((value, i) => (value ?? 0) + (below?.[i] ?? 0)));
  }
  return [[...at], ...tops.reverse()];
}

function optionsFor(props: ChartProps, element: HTMLElement, setUnder: (index: number | null) => void): Options {
  const { series, kind, axis } = props;
  const soft = colour(element, "--text-soft");
  const line = { stroke: colour(element, "--border"), width: 1 };
  const bars = UPlot.paths.bars?.({ size: [0.72, 28], align: 1 });
  const order = kind === "bars" ? [...series].reverse() : series;
  const width = (props.at[1] ?? 0) - (props.at[0] ?? 0);
  const isWhole = series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)));
  const font = `12px ${getComputedStyle(element).fontFamily}`;
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { y: false, points: { show: kind === "lines" }, drag: { x: false, y: false } },
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: {
      x: { time: true, ...(kind === "bars" ? { range: (_, min, max) => [min, max + width] } : {}) },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: [
      { stroke: soft, font, grid: { show: false }, ticks: { ...line, size: 4 }, size: 34, space: 64, values: times },
      {
        stroke: soft,
        font,
        grid: line,
        ticks: { show: false },
        size: 58,
        splits: isWhole ? spreadWhole : spread,
        values: (_, splits) => splits.map(axis),
      },
    ],
    series: [
      {},
      ...order.map(({ label, tone }) => {
        const stroke = colour(element, `--chart-${tone}`);
        return kind === "bars" && bars
          ? { label, fill: stroke, width: 0, paths: bars, points: { show: false } }
          : { label, stroke, width: 2, points: { show: true, size: 5, fill: stroke, stroke }, spanGaps: true };
      }),
    ],
    hooks: { setCursor: [(plot) => setUnder(pointUnder(plot, kind))] },
  };
}

/** The point under the pointer. A bar extends to the right of its start, so the nearest start may be the next bar's. */
function pointUnder({ cursor: { idx, left = -1 }, data, posToVal }: UPlot, kind: ChartProps["kind"]): number | null {
  if (idx === null || idx === undefined || left < 0) return null;
  const start = data[0][idx] ?? 0;
  return kind === "bars" && idx > 0 && posToVal(left, "x") < start ? idx - 1 : idx;
}

/** Chooses about four grid lines at round values. */
function spread(_: UPlot, __: number, min: number, max: number): number[] {
  const rough = (max - min) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}

/** Formats the time axis: times of day, and the date at the start of a day. */
function times(_: UPlot, splits: number[], __: number, ___: number, step: number): string[] {
  return splits.map((seconds) => {
    const at = new Date(seconds * 1000).toISOString();
    const isDay = step >= 86_400 || at.slice(11, 16) === "00:00";
    return isDay ? DAYS.format(seconds * 1000) : at.slice(11, 16);
  });
}

const DAYS = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** Grid lines for counts: whole numbers only. */
function spreadWhole(plot: UPlot, axis: number, min: number, max: number): number[] {
  return spread(plot, axis, min, max).filter(Number.isInteger);
}

/** Resolves a custom property to the colour of the current theme. */
function colour(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}

function label(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}
