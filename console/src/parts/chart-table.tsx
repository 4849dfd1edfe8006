import { useState } from "preact/hooks";
import type { ChartProps } from "./chart.tsx";
import { Scroll } from "./scroll.tsx";

/** The points of a chart that are not zero, as a table that opens. @param label formats the start of a point */
export function ChartTable({ title, at, series, write, label }: ChartProps & { label: (seconds: number) => string }) {
  const [open, setOpen] = useState(false);
  const rows = open ? at.map((start, i) => ({ start, values: series.map(({ values }) => values[i] ?? null) })) : [];
  const filled = rows.filter(({ values }) => values.some((value) => value));
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        Figures<span class="hidden"> of {title}</span>
      </summary>
      {open && filled.length === 0 && <p class="soft">All points are zero.</p>}
      {filled.length > 0 && (
        <Scroll label={`Figures of ${title}`}>
          <table>
            <thead>
              <tr>
                <th scope="col">From</th>
                {series.map((one) => (
                  <th key={one.label} scope="col" class="figure">
                    {one.label}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {filled.reverse().map(({ start, values }) => (
                <tr key={start}>
                  <th scope="row">{label(start)}</th>
                  {values.map((value, i) => (
                    <td key={series[i]?.label} class="figure">
                      {value === null ? "–" : write(value)}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </details>
  );
}
