import UPlot, { type AlignedData, type Options } from "uplot";
import type { ChartProps } from "./chart.tsx";
import { runningPoint } from "./running-point.ts";

/** Charts with one key show the same point when the pointer is on one of them. */
const SYNC = "page";

/** Data of stacked bars: each bar is drawn from zero to its top, so the tallest has to be drawn first. */
export function stack({ at, series, kind }: ChartProps): AlignedData {
  if (kind === "lines") return [[...at], ...series.map(({ values }) => [...values])];
  const tops: number[][] = [];
  for (const { values } of series) {
    const below = tops.at(-1);
    tops.push(values.map((value, i) => (value ?? 0) + (below?.[i] ?? 0)));
  }
  return [[...at], ...tops.reverse()];
}

/** Options of uPlot, without the size. @param setUnder called with the point under the pointer */
export function optionsFor(
  props: ChartProps,
  element: HTMLElement,
  setUnder: (index: number | null) => void,
): Omit<Options, "width" | "height"> {
  const { kind, at, zoom } = props;
  const width = widthOf(at);
  const start = at[runningPoint(props) ?? -1];
  const paint = start === undefined ? undefined : markRunning(start, width, element);
  return {
    legend: { show: false },
    padding: [8, 4, 0, 0],
    cursor: {
      y: false,
      points: { show: kind === "lines" },
      drag: { x: zoom !== undefined, y: false, setScale: false },
      sync: { key: SYNC, scales: ["x", null] },
    },
    tzDate: (seconds) => UPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
    scales: {
      x: { time: true, range: (_, min, max) => [min, max + width] },
      y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
    },
    axes: axesOf(props, element),
    series: seriesOf(props, element),
    hooks: {
      setCursor: [(plot) => setUnder(pointUnder(plot))],
      setSelect: [(plot) => zoom && select(plot, width, zoom)],
      ...(paint ? { draw: [paint] } : {}),
    },
  };
}

function widthOf(at: readonly number[]): number {
  return at.length > 1 ? (at[1] ?? 0) - (at[0] ?? 0) : 3600;
}

function axesOf({ series, axis }: ChartProps, element: HTMLElement): NonNullable<Options["axes"]> {
  const soft = colour(element, "--text-soft");
  const line = { stroke: colour(element, "--border"), width: 1 };
  const isWhole = series.every(({ values }) => values.every((value) => value === null || Number.isInteger(value)));
  const font = `11px ${getComputedStyle(element).fontFamily}`;
  return [
    { stroke: soft, font, grid: { show: false }, ticks: { ...line, size: 4 }, size: 32, space: 64, values: times },
    {
      stroke: soft,
      font,
      grid: line,
      ticks: { show: false },
      size: 48,
      splits: isWhole ? spreadWhole : spread,
      values: (_, splits) => splits.map((value) => axis(value, (splits[1] ?? 1) - (splits[0] ?? 0))),
    },
  ];
}

function seriesOf({ series, kind }: ChartProps, element: HTMLElement): Options["series"] {
  const bars = UPlot.paths.bars?.({ size: [0.76, 32], align: 1, radius: 0.12 });
  const order = kind === "bars" ? [...series].reverse() : series;
  return [
    {},
    ...order.map(({ label, tone }) => {
      const stroke = colour(element, `--chart-${tone}`);
      return kind === "bars" && bars
        ? { label, fill: stroke, width: 0, paths: bars, points: { show: false } }
        : { label, stroke, width: 2, points: { show: true, size: 6, fill: stroke, filter: lonePoint }, spanGaps: true };
    }),
  ];
}

/** The only point of a line, which is drawn as a dot because no line leads to it; of longer lines, no point. */
function lonePoint({ data }: UPlot, line: number): number[] {
  const known = [...(data[line] ?? []).entries()].filter(([, value]) => typeof value === "number");
  return known.length === 1 ? known.map(([i]) => i) : [];
}

/** The point under the pointer. A point extends to the right of its start, so the nearest start may be the next one. */
function pointUnder({ cursor: { idx, left = -1 }, data, posToVal }: UPlot): number | null {
  if (idx === null || idx === undefined || left < 0) return null;
  return idx > 0 && posToVal(left, "x") < (data[0][idx] ?? 0) ? idx - 1 : idx;
}

/** Reports the selected range, in whole points, and removes the selection. */
function select(plot: UPlot, width: number, zoom: (from: Date, to: Date) => void): void {
  const { left, width: pixels } = plot.select;
  if (pixels < 4) return;
  const first = Math.floor(plot.posToVal(left, "x") / width) * width;
  const end = Math.ceil(plot.posToVal(left + pixels, "x") / width) * width;
  plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoom(new Date(first * 1000), new Date(end * 1000));
}

/** Paints the interval that still runs paler, with a dashed line and the words "so far". */
function markRunning(start: number, width: number, element: HTMLElement): (plot: UPlot) => void {
  const surface = colour(element, "--surface");
  const soft = colour(element, "--text-soft");
  const font = getComputedStyle(element).fontFamily;
  return ({ ctx, bbox, valToPos }) => {
    const left = valToPos(start, "x", true);
    const right = Math.min(valToPos(start + width, "x", true), bbox.left + bbox.width);
    ctx.save();
    ctx.globalAlpha = 0.55;
    ctx.fillStyle = surface;
    ctx.fillRect(left, bbox.top, right - left, bbox.height);
    ctx.globalAlpha = 1;
    ctx.strokeStyle = soft;
    ctx.setLineDash([3 * devicePixelRatio, 3 * devicePixelRatio]);
    ctx.beginPath();
    ctx.moveTo(left, bbox.top);
    ctx.lineTo(left, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillStyle = soft;
    ctx.font = `${11 * devicePixelRatio}px ${font}`;
    ctx.textAlign = "right";
    ctx.fillText("so far", left - 4 * devicePixelRatio, bbox.top + 10 * devicePixelRatio);
    ctx.restore();
  };
}

/** Chooses about four grid lines at round values. */
function spread(_: UPlot, __: number, min: number, max: number): number[] {
  const rough = (max - min) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ([1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough) ?? 10) * power;
  return Array.from({ length: Math.floor(max / step) + 1 }, (_, i) => i * step);
}

/** Grid lines for counts: whole numbers only. */
function spreadWhole(plot: UPlot, axis: number, min: number, max: number): number[] {
  return spread(plot, axis, min, max).filter(Number.isInteger);
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

/** Resolves a custom property to the colour of the current theme. */
function colour(element: HTMLElement, name: string): string {
  element.style.color = `var(${name})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}
