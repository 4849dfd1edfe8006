import { AnswerShapeSchema, type Generation } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { count, duration, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Ago } from "../parts/ago.tsx";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { Link } from "../parts/link.tsx";
import { pathOf } from "../route.ts";
import { activity } from "../rpc.ts";
import type { Filter } from "./find.ts";

/** Interval at which the list is loaded, in milliseconds. */
const LOAD_MS = 3_000;

const COLUMNS: readonly Column<Generation>[] = [
  {
    title: "Time",
    cell: ({ id, at }) => (
      <Link to={pathOf(`runs/${id}`)}>
        <Ago at={at} />
      </Link>
    ),
  },
  { title: "Key", class: "name", cell: ({ keyName, keyId }) => keyName || keyId },
  { title: "Level", class: "half", cell: ({ level }) => wordOf(EffortSchema, level) },
  { title: "Answer", class: "half", cell: ({ shape }) => words(wordOf(AnswerShapeSchema, shape)) },
  { title: "Input", class: "half", figure: true, cell: ({ inputTokens }) => count(inputTokens) },
  { title: "So far", class: "half", figure: true, cell: ({ latencyMs }) => duration(latencyMs) },
];

/** The requests that run now and match a filter, with links to their runs. Shows nothing while none does. */
export function RunningList({ filter }: { filter: Filter }) {
  const { data } = useLoad((signal) => activity.listRunning({}, { signal }), "running", LOAD_MS);
  const rows = data?.generations.filter((row) => matches(row, filter)) ?? [];
  if (rows.length === 0) return null;
  return (
    <Card title="Running now" flush>
      <DataTable label="Running now" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} />
    </Card>
  );
}

function matches({ keyId, level, user, tags }: Generation, filter: Filter): boolean {
  const [name = "", ...value] = filter.tag.split("=");
  return (
    filter.outcome === "" &&
    filter.period.to === undefined &&
    ["", keyId].includes(filter.keyId) &&
    ["", wordOf(EffortSchema, level)].includes(filter.level) &&
    ["", user].includes(filter.user) &&
    (filter.tag === "" || tags[name] === value.join("="))
  );
}
