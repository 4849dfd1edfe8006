import { useLoad } from "../load.ts";
import { FilterChip } from "../parts/filter-chip.tsx";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { Refresh } from "../parts/icon-button.tsx";
import { usePager } from "../parts/pager.tsx";
import { Day } from "../parts/period.tsx";
import { narrow } from "../route.ts";
import { AuditCard } from "./audit-card.tsx";
import { ACTORS, type Calls, type Filter, findChanges, KINDS } from "./filter.ts";

interface Props {
  calls: Calls;
  filter: Filter;
  /** Address of the audit log of one workspace. With it, a column names the workspace of each change. */
  addressOfWorkspace?: (name: string) => string;
}

/** The changes that match a filter, in pages, with the controls of the filter. */
export function AuditLog({ calls, filter, ...rest }: Props) {
  const of = JSON.stringify(filter);
  const pager = usePager(of);
  const page = useLoad(
    (signal) => findChanges(calls, filter, { pageSize: 50, pageToken: pager.token }, signal),
    `${of} ${pager.token}`,
  );
  return (
    <>
      <div class="toolbar">
        <FilterChoice label="Changes" value={filter.kind} options={KINDS} change={(kind) => narrow({ kind })} />
        <FilterChoice label="Made by" value={filter.by} options={ACTORS} change={(by) => narrow({ by })} />
        {filter.actor && (
          <FilterChip label="Show the changes of all" remove={() => narrow({ actor: undefined })}>
            By: <strong>{filter.actor}</strong>
          </FilterChip>
        )}
        <Days filter={filter} />
        <Refresh run={page.reload} />
      </div>
      <AuditCard page={page} pager={pager} filter={filter} {...rest} />
    </>
  );
}

/** First and last day. Without one, the period has no bound on that side. */
function Days({ filter: { from, to } }: { filter: Filter }) {
  return (
    <span class="range">
      <Day label="First day" value={from} {...(to ? { max: to } : {})} change={(from) => narrow({ from })} />
      <span class="soft">to</span>
      <Day label="Last day" value={to} {...(from ? { min: from } : {})} change={(to) => narrow({ to })} />
    </span>
  );
}
