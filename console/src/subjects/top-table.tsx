import type { SubjectUsage } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { CapFigureSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../../../src/contract/json-names.ts";
import { columnAmount, count } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { keyLabels } from "../parts/key-labels.ts";
import { Link } from "../parts/link.tsx";
import { PagerButtons, usePager } from "../parts/pager.tsx";
import { Pending } from "../parts/pending.tsx";
import { boundsOf, type Period, spanOf } from "../parts/period.tsx";
import { Search } from "../parts/search.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { narrow, pathOf } from "../route.ts";
import { usage } from "../rpc.ts";
import { fieldsOf, type Group, headOf, pluralOf, subjectOf } from "./group.ts";

const PAGE = 25;

const ORDERS = [
  ["", "Most credits"],
  ["requests", "Most requests"],
  ["input_tokens", "Most input tokens"],
  ["output_tokens", "Most output tokens"],
] as const;

interface Props {
  period: Period;
  group: Group;
  /** Word of the figure that orders the rows; empty for credits. */
  order: string;
  search: string;
  everyMs: number;
}

/** The subjects of a group by what they used, page by page; the page in view alone is in memory. */
export function TopTable({ period, group, order, search, everyMs }: Props) {
  const of = `${period.key} ${group} ${order} ${search}`;
  const pager = usePager(of);
  const request = { ...fieldsOf(group), figure: numberOf(CapFigureSchema, order), search, pageSize: PAGE };
  const list = useLoad(
    (signal) => usage.listTopSubjects({ ...boundsOf(period), ...request, pageToken: pager.token }, { signal }),
    `${of} ${pager.token}`,
    pager.number === 1 ? everyMs : 0,
  );
  return (
    <Card
      title={titleOf(group)}
      actions={
        <div class="toolbar">
          <Search key={group} value={search} placeholder="Find by the start" />
          <FilterChoice label="Order" value={order} options={ORDERS} change={(order) => narrow({ order })} />
        </div>
      }
      flush
    >
      <Pending of={list} what={pluralOf(group)} skeleton={<Skeleton tall="20rem" />}>
        {({ subjects, total, nextPageToken }) => (
          <>
            {subjects.length === 0 ? (
              <Nothing group={group} search={search} />
            ) : (
              <DataTable
                label={`Use of ${pluralOf(group)}`}
                columns={columnsOf(group, period, subjects, Number(total?.credits ?? 0))}
                rows={subjects}
                keyOf={({ subject }) => subject}
              />
            )}
            <PagerButtons pager={pager} next={nextPageToken} words={["Back", "Next"]} />
          </>
        )}
      </Pending>
    </Card>
  );
}

function titleOf(group: Group): string {
  const plural = pluralOf(group);
  return plural.charAt(0).toUpperCase() + plural.slice(1);
}

function columnsOf(group: Group, period: Period, rows: readonly SubjectUsage[], all: number): Column<SubjectUsage>[] {
  const span = spanOf(period);
  const labels = keyLabels(rows, ({ subject }) => subject);
  return [
    {
      title: headOf(group),
      class: "name",
      cell: ({ subject }) => (
        <Link
          to={
            group === "key"
              ? pathOf("", { key: subject, ...span })
              : pathOf("subjects", { subject: subjectOf(group, subject), ...span })
          }
        >
          {labels.get(subject)}
        </Link>
      ),
    },
    { title: "Credits", figure: true, cell: ({ credits }) => columnAmount(credits, 6) },
    { title: "Share", cell: ({ credits }) => <Share of={Number(credits)} all={all} /> },
    { title: "Answered", figure: true, cell: ({ requests }) => count(requests) },
    { title: "Failed", figure: true, cell: ({ failedRequests }) => count(failedRequests) },
    { title: "Input tokens", figure: true, cell: ({ inputTokens }) => count(inputTokens) },
    { title: "Output tokens", figure: true, cell: ({ outputTokens }) => count(outputTokens) },
  ];
}

/** The share of all credits of the workspace. */
function Share({ of, all }: { of: number; all: number }) {
  const share = all > 0 ? of / all : 0;
  return (
    <span class="share">
      <span class="bar" aria-hidden="true">
        <span style={{ width: `${Math.min(1, share) * 100}%` }} />
      </span>
      {`${Number((share * 100).toFixed(1))} %`}
    </span>
  );
}

function Nothing({ group, search }: { group: Group; search: string }) {
  if (search) {
    return (
      <Empty title="Nothing matches.">
        <p>The search compares the start of the identifier, with upper and lower case.</p>
      </Empty>
    );
  }
  return (
    <Empty title={`No ${pluralOf(group)} in this period.`}>
      <p>
        Requests name them with <code>user</code> and <code>tags</code>:{" "}
        <a href="/docs/guides/budgets">users, tags and budgets</a>.
      </p>
    </Empty>
  );
}
