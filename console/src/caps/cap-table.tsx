import type { Cap } from "../../../gen/chorus/admin/v1/caps_pb.js";
import { CapAction } from "../../../gen/chorus/v1/generation_pb.js";
import { timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { FillTag, fillOf, Meter } from "../parts/meter.tsx";
import { hasEnded, isTemplate } from "./list.ts";
import { amountOf, nameOf } from "./words.ts";

interface Props {
  found: readonly Cap[];
  /** Names of subjects; others are shown as they are. */
  names: ReadonlyMap<string, string> | undefined;
  /** Called for a cap that is to be removed; undefined: none can be. */
  clear: ((cap: Cap) => void) | undefined;
}

/** Caps as a table. */
export function CapTable({ found, names, clear }: Props) {
  if (found.length === 0) return <Empty title="There is no cap." />;
  const columns: Column<Cap>[] = [
    { title: "Subject", class: "name", cell: ({ subject }) => <Subject of={subject} name={names?.get(subject)} /> },
    { title: "Cap", class: "wraps", cell: ({ figure, period }) => nameOf(figure, period) },
    { title: "Amount", figure: true, cell: ({ figure, amount }) => amountOf(figure, amount) },
    { title: "Used", cell: (cap) => <Use of={cap} /> },
    {
      title: "When used up",
      class: "wraps",
      cell: ({ action }) => (action === CapAction.LOW ? "effort low" : "refused"),
    },
    { title: "Until", class: "wraps", cell: (cap) => <Until of={cap} /> },
    {
      title: "",
      class: "actions",
      cell: (cap) =>
        cap.id !== "" &&
        clear && (
          <button
            type="button"
            class="quiet small danger"
            aria-label={`Clear ${nameOf(cap.figure, cap.period)} of ${cap.subject}`}
            onClick={() => clear(cap)}
          >
            Clear
          </button>
        ),
    },
  ];
  return <DataTable label="Caps" columns={columns} rows={found} keyOf={keyOf} />;
}

/** Caps of a template have no identifier in the list of one subject. */
function keyOf({ id, figure, period, action }: Cap): string {
  return id || `${figure} ${period} ${action}`;
}

function Subject({ of, name = of }: { of: string; name: string | undefined }) {
  return (
    <span title={of}>
      {name} {isTemplate(of) && <span class="tag">template</span>}
    </span>
  );
}

function Until({ of: cap }: { of: Cap }) {
  if (hasEnded(cap)) return <span class="tag">ended</span>;
  const [day, time = ""] = timeText(cap.endsAt).split(" ");
  if (!day) return <>–</>;
  return (
    <span>
      <span class="date">{day}</span> {time.slice(0, 5)}
    </span>
  );
}

function Use({ of: { figure, period, amount, used, subject } }: { of: Cap }) {
  if (used === undefined) return <span class="soft">–</span>;
  const [value, limit] = [Number(used), Number(amount)];
  return (
    <div class="limit">
      <p>
        {amountOf(figure, used)} <FillTag fill={fillOf(value, limit)} />
      </p>
      <Meter used={value} limit={limit} label={`${nameOf(figure, period)} of ${subject}`} />
    </div>
  );
}
