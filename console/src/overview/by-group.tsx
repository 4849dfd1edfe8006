import { periodOf } from "../parts/period.tsx";
import { useRoute } from "../route.ts";
import { ExportUsage } from "../subjects/export-usage.tsx";
import { groupOf, pluralOf } from "../subjects/group.ts";
import { SplitCharts } from "../subjects/split-charts.tsx";
import { TopTable } from "../subjects/top-table.tsx";

const EVERY_MS = 15_000;

/** Use of the period split by keys, users or values of a tag, as the address says: charts and a table. */
export function ByGroup() {
  const { query } = useRoute();
  const period = periodOf(query);
  const group = groupOf(query.get("by")) ?? "key";
  return (
    <>
      <div class="toolbar">
        <h2>Usage of {pluralOf(group)}</h2>
        <ExportUsage period={period} group={group} />
      </div>
      <SplitCharts period={period} group={group} everyMs={EVERY_MS} />
      <TopTable
        period={period}
        group={group}
        order={query.get("order") ?? ""}
        search={query.get("search") ?? ""}
        everyMs={EVERY_MS}
      />
    </>
  );
}
