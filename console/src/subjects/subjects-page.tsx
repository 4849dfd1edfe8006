import { CapCard } from "../caps/cap-card.tsx";
import { Link } from "../parts/link.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { type Period, PeriodPicker, periodOf, spanOf } from "../parts/period.tsx";
import { pathOf, useRoute } from "../route.ts";
import { ExportUsage } from "./export-usage.tsx";
import { groupOf, headOf, partsOf, pluralOf, subjectOf, tagOf } from "./group.ts";
import { GroupPicker } from "./group-picker.tsx";
import { SplitCharts, SubjectCharts } from "./split-charts.tsx";
import { TopTable } from "./top-table.tsx";

const EVERY_MS = 15_000;

/** Who uses how much, and what caps it: of all users or values of a tag, or of one of them. */
export function SubjectsPage() {
  const { query } = useRoute();
  const period = periodOf(query, "7d");
  const subject = query.get("subject") ?? "";
  return subject ? <OneSubject subject={subject} period={period} /> : <AllSubjects query={query} period={period} />;
}

function AllSubjects({ query, period }: { query: URLSearchParams; period: Period }) {
  const group = groupOf(query.get("by")) ?? "user";
  const each = tagOf(group) ? `each ${headOf(group)}` : `each ${group}`;
  return (
    <>
      <PageHead title="Users and tags" lead="For whom requests are made, what they use, and what caps it.">
        <GroupPicker group={group} options={[["user", "By user"]]} />
        <PeriodPicker period={period} />
        <ExportUsage period={period} group={group} />
      </PageHead>
      <SplitCharts period={period} group={group} everyMs={EVERY_MS} />
      <TopTable
        period={period}
        group={group}
        order={query.get("order") ?? ""}
        search={query.get("search") ?? ""}
        everyMs={EVERY_MS}
      />
      <CapCard key={group} title={`Caps of ${pluralOf(group)}`} subject={subjectOf(group, "*")} whose={each} />
    </>
  );
}

function OneSubject({ subject, period }: { subject: string; period: Period }) {
  const { group, name } = partsOf(subject);
  const filter = tagOf(group) ? { tag: `${tagOf(group)}=${name}` } : { [group]: name };
  return (
    <>
      <PageHead title="Users and tags" lead={`${headOf(group)} ${name}`}>
        <Link to={pathOf("subjects", { ...spanOf(period), by: group })}>All {pluralOf(group)}</Link>
        <Link to={pathOf("activity", { ...spanOf(period), ...filter })}>Requests</Link>
        <PeriodPicker period={period} />
      </PageHead>
      <SubjectCharts subject={subject} period={period} everyMs={EVERY_MS} />
      <CapCard title={`Caps of ${name}`} subject={subject} whose={name} />
    </>
  );
}
