import "uplot/dist/uPlot.min.css";
import { useEffect, useRef, useState } from "preact/hooks";
import UPlot from "uplot";
import { themeChanges } from "../shell/theme.ts";
import { optionsFor, stack } from "./chart-options.ts";
import { ChartTable } from "./chart-table.tsx";
import { runningPoint } from "./running-point.ts";

export interface ChartSeries {
  readonly label: string;
  /** One value per point; null if there is none. */
  readonly values: readonly (number | null)[];
  readonly tone: "accent" | "second" | "third" | "fourth" | "fifth" | "rest" | "bad";
}

/** The tones of parts of a whole, the largest first. All others have the tone `rest`. */
export const TONES = ["accent", "second", "third", "fourth", "fifth"] as const;

export interface ChartProps {
  readonly title: string;
  /** Sum of the whole period, as text. */
  readonly summary: string;
  /** Starts of the points, in seconds. */
  readonly at: readonly number[];
  /** Whether one of the points is an interval that still runs. */
  readonly runs: boolean;
  /** Stacked bars with the first series at the bottom, or lines. */
  readonly kind: "bars" | "lines";
  readonly series: readonly ChartSeries[];
  /** Formats a value. */
  readonly write: (value: number) => string;
  /** Formats a value for the axis. @param step distance of its marks */
  readonly axis: (value: number, step: number) => string;
  /** Called with the range of points that was selected by dragging. */
  readonly zoom?: (from: Date, to: Date) => void;
}

const HEIGHT = 200;

/**
 * A chart on a card, with its values in a table below, which screen readers can read. All charts of a page show the
 * point under the pointer of one of them.
 */
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
    const size = () => ({ width: element.clientWidth, height: HEIGHT });
    const plot = new UPlot({ ...optionsFor(props, element, setUnder), ...size() }, stack(props), element);
    const observer = new ResizeObserver(() => plot.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, [drawn, theme]);

  const start = under === null ? undefined : at[under];
  const valuesAt = (point: number) =>
    series.map((each) => `${each.label} ${writeOr(each.values[point], write)}`).join(" · ");
  const isRunning = under !== null && under === runningPoint(props);
  return (
    <figure class="card chart">
      <header>
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
        <p class="text total">
          {start === undefined || under === null
            ? summary
            : `${label(start)}${isRunning ? " (so far)" : ""}: ${valuesAt(under)}`}
        </p>
      </header>
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

function label(seconds: number): string {
  return new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ");
}
