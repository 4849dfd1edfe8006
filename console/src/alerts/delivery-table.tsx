import { Bell } from "lucide";
import { type AlertDelivery, AlertDeliveryState } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { count, timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { eventOf } from "./event.ts";

const STATES: Partial<Record<AlertDeliveryState, readonly [text: string, tone: string]>> = {
  [AlertDeliveryState.WAITING]: ["Waiting", "warn"],
  [AlertDeliveryState.DELIVERED]: ["Delivered", "good"],
  [AlertDeliveryState.FAILED]: ["Failed", "bad"],
};

interface Props {
  deliveries: readonly AlertDelivery[];
  /** True shows the workspace of each event. */
  all: boolean;
}

/** Lists events with the state of their delivery, newest first. */
export function DeliveryTable({ deliveries, all }: Props) {
  if (deliveries.length === 0) {
    return (
      <Empty title="There are no deliveries yet." icon={Bell}>
        <p>When a threshold is crossed, the event appears here.</p>
      </Empty>
    );
  }
  return (
    <DataTable
      label="Deliveries"
      columns={all ? COLUMNS : COLUMNS.filter(({ title }) => title !== "Workspace")}
      rows={deliveries}
      keyOf={({ id }) => id}
    />
  );
}

const COLUMNS: Column<AlertDelivery>[] = [
  { title: "Time", cell: ({ createdAt }) => timeText(createdAt) },
  { title: "Event", class: "name", cell: ({ event }) => <Event json={event} /> },
  { title: "Workspace", cell: ({ event }) => eventOf(event).workspace },
  { title: "State", cell: ({ state }) => <State state={state} /> },
  { title: "Attempts", figure: true, cell: ({ attempts }) => count(attempts) },
  { title: "Result", class: "name", cell: (delivery) => <Result of={delivery} /> },
];

function Event({ json }: { json: string }) {
  const { title, text } = eventOf(json);
  return (
    <span>
      <strong>{title}</strong> <span class="soft">{text}</span>
    </span>
  );
}

function State({ state }: { state: AlertDeliveryState }) {
  const [text, tone] = STATES[state] ?? ["Unknown", ""];
  return <span class={`tag ${tone}`}>{text}</span>;
}

function Result({ of: { responseStatus, error, nextAttemptAt, attempts } }: { of: AlertDelivery }) {
  if (attempts === 0) return <span class="soft">Not sent yet</span>;
  if (!error) return <>{responseStatus === 0 ? "" : `Status ${responseStatus}`}</>;
  return (
    <span>
      {error}
      {nextAttemptAt && <span class="soft more">Next attempt {timeText(nextAttemptAt)}</span>}
    </span>
  );
}
