import { count, duration } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Chart } from "../parts/chart.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Change, Stat } from "../parts/stat.tsx";

const COURSE = [3, 5, 4, 8, 6, 9, 12, 10, 14, 11, 7, 5];
const AT = COURSE.map((_, i) => 1_773_360_000 + i * 3600);

interface Row {
  readonly name: string;
  readonly requests: number;
  readonly outcome: string;
}

const ROWS: Row[] = [
  { name: "Checkout assistant", requests: 401_204, outcome: "good" },
  { name: "A key with a long name that does not fit into one line of the column", requests: 12, outcome: "warn" },
  { name: "Old importer", requests: 0, outcome: "bad" },
];

const COLUMNS: Column<Row>[] = [
  { title: "Name", class: "name", cell: ({ name }) => name },
  { title: "Requests", figure: true, cell: ({ requests }) => count(requests) },
  { title: "State", cell: ({ outcome }) => <span class={`tag ${outcome}`}>{outcome}</span> },
];

/** Figures, charts and a table. */
export function Data() {
  return (
    <>
      <dl class="stats">
        <Stat label="Better" value="18,895" course={COURSE}>
          <Change now={12} before={10} more="better" />
        </Stat>
        <Stat label="Worse" value="812" unit="ms" course={COURSE}>
          <Change now={12} before={10} more="worse" />
        </Stat>
        <Stat label="Neutral" value="51.2" unit="credits" course={COURSE}>
          <Change now={9} before={10} />
        </Stat>
        <Stat label="Loading" value={undefined} />
      </dl>
      <div class="charts">
        <Chart
          title="Bars"
          summary="94 answered, 24 failed"
          at={AT}
          runs
          kind="bars"
          series={[
            { label: "Answered", values: COURSE, tone: "accent" },
            { label: "Cached", values: COURSE.map((n) => n / 2), tone: "third" },
            { label: "Failed", values: COURSE.map((n) => n / 4), tone: "bad" },
          ]}
          write={count}
          axis={count}
        />
        <Chart
          title="Lines"
          summary="median 700 ms"
          at={AT}
          runs={false}
          kind="lines"
          series={[
            { label: "Median", values: COURSE.map((n) => n * 100), tone: "accent" },
            { label: "95 %", values: COURSE.map((n) => n * 240), tone: "second" },
          ]}
          write={duration}
          axis={duration}
        />
      </div>
      <Card title="Table" flush>
        <DataTable label="Example" columns={COLUMNS} rows={ROWS} keyOf={({ name }) => name} />
      </Card>
    </>
  );
}
