import { timestampDate } from "@bufbuild/protobuf/wkt";
import { Bell } from "lucide";
import { type AlertDelivery, AlertDeliveryState } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { count, timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Empty } from "../parts/empty.tsx";
import { Link } from "../parts/link.tsx";
import { causeOf, eventOf } from "./event.ts";

const STATES: Partial<Record<AlertDeliveryState, readonly [text: string, tone: string]>> = {
  [AlertDeliveryState.WAITING]: ["Waiting", "warn"],
  [AlertDeliveryState.DELIVERED]: ["Delivered", "good"],
  [AlertDeliveryState.FAILED]: ["Failed", "bad"],
};

interface Props {
  deliveries: readonly AlertDelivery[];
  /** Address of the page of a workspace. With it, the workspace of each event is shown. */
  addressOfWorkspace: ((name: string) => string) | undefined;
}

/** Lists events with the state of their delivery, newest first. */
export function DeliveryTable({ deliveries, addressOfWorkspace }: Props) {
  if (deliveries.length === 0) {
    return (
      <Empty title="There are no deliveries yet." icon={Bell}>
        <p>When a threshold is crossed, the event appears here.</p>
      </Empty>
    );
  }
  return (
    <DataTable label="Deliveries" columns={columnsFor(addressOfWorkspace)} rows={deliveries} keyOf={({ id }) => id} />
  );
}

function columnsFor(addressOfWorkspace: Props["addressOfWorkspace"]): Column<AlertDelivery>[] {
  const workspace: Column<AlertDelivery>[] = addressOfWorkspace
    ? [{ title: "Workspace", cell: ({ event }) => <Workspace of={eventOf(event).workspace} to={addressOfWorkspace} /> }]
    : [];
  return [
    { title: "Time", cell: ({ createdAt }) => timeText(createdAt) },
    { title: "Event", class: "name", cell: (delivery) => <Event of={delivery} hasCause={!addressOfWorkspace} /> },
    ...workspace,
    { title: "State", cell: ({ state }) => <State state={state} /> },
    { title: "Attempts", figure: true, cell: ({ attempts }) => count(attempts) },
    { title: "Result", class: "name", cell: (delivery) => <Result of={delivery} /> },
  ];
}

function Workspace({ of: name, to }: { of: string; to: (name: string) => string }) {
  return name === "" ? null : <Link to={to(name)}>{name}</Link>;
}

/** An event, with a link to what it is about, where that is a page of the workspace. */
function Event({ of: { event, createdAt }, hasCause }: { of: AlertDelivery; hasCause: boolean }) {
  const { title, text } = eventOf(event);
  const cause = hasCause && createdAt ? causeOf(event, timestampDate(createdAt)) : undefined;
  return (
    <span>
      <strong>{title}</strong> <span class="soft">{text}</span> {cause && <Link to={cause.address}>{cause.text}</Link>}
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
