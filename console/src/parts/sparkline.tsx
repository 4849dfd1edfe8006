const WIDTH = 100;
const HEIGHT = 30;

/** The course of a figure, without axes: it repeats what a chart shows, so screen readers skip it. */
export function Sparkline({ values }: { values: readonly (number | null)[] }) {
  const points = values.flatMap((value, i) => (value === null ? [] : [[i, value] as const]));
  const most = Math.max(...points.map(([, value]) => value), 0);
  if (points.length < 2 || most === 0) return <svg class="sparkline" aria-hidden="true" />;
  const line = points
    .map(([i, value]) => {
      const x = (i / (values.length - 1)) * WIDTH;
      return `${x.toFixed(1)} ${(HEIGHT - (value / most) * HEIGHT).toFixed(1)}`;
    })
    .join("L");
  const [first = 0, last = 0] = [points[0]?.[0], points.at(-1)?.[0]].map(
    (i) => ((i ?? 0) / (values.length - 1)) * WIDTH,
  );
  return (
    <svg class="sparkline" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <path class="area" d={`M${first} ${HEIGHT}L${line}L${last} ${HEIGHT}Z`} />
      <path d={`M${line}`} />
    </svg>
  );
}
