import { useState } from "preact/hooks";
import type { LearnedAbility, LearnedModel, ListLearnedResponse } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { count, percent } from "../format.ts";
import { useLoad } from "../load.ts";
import { Card } from "../parts/card.tsx";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { ConfirmDialog } from "../parts/form-dialog.tsx";
import { Pending } from "../parts/pending.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { toast } from "../parts/toasts.tsx";
import { operations } from "./rpc.ts";

/** Shows what has been learned of the models, by ability, and lets an operator reset it. */
export function LearnedCard({ everyMs }: { everyMs: number }) {
  const list = useLoad((signal) => operations.listLearned({}, { signal }), "learned", everyMs);
  const [asks, setAsks] = useState(false);
  const done = (sentence: string) => {
    setAsks(false);
    toast(sentence);
    list.reload();
  };
  const { abilities = [] } = list.data ?? {};
  const button = (
    <button type="button" class="small" onClick={() => setAsks(true)}>
      Reset…
    </button>
  );
  return (
    <Card
      title="Learned from graded answers"
      text={list.data && sentenceOf(list.data)}
      actions={abilities.length > 0 && button}
      flush
    >
      <Pending of={list} what="what is learned" skeleton={<Skeleton tall="6rem" />}>
        {({ abilities }) => abilities.length > 0 && <LearnedTable of={abilities} />}
      </Pending>
      {asks && <Reset close={() => setAsks(false)} done={done} />}
    </Card>
  );
}

/** Whether requests use what is learned, in a sentence. */
function sentenceOf({ on, abilities }: ListLearnedResponse): string {
  if (abilities.length === 0) return "No disagreement of models is graded yet.";
  if (!on) return "Learning is off: requests do not use these figures.";
  if (!abilities.some(({ stated }) => stated)) return "Requests use these figures.";
  return "Requests use these figures, except for abilities of which the catalogue states the accuracy of every model.";
}

function LearnedTable({ of: abilities }: { of: readonly LearnedAbility[] }) {
  const rows = abilities.flatMap((of) => of.models.map((model) => ({ of, model })));
  return (
    <DataTable label="Learned" columns={COLUMNS} rows={rows} keyOf={({ of, model }) => `${of.ability} ${model.name}`} />
  );
}

function stateOf({ of: { stated, enough }, model }: Row): string {
  if (stated) return "Not used";
  return enough ? (model.held ? "Order held" : "Learned") : "Too few";
}

interface Row {
  of: LearnedAbility;
  model: LearnedModel;
}

const COLUMNS: Column<Row>[] = [
  { title: "Model", cell: ({ model }) => model.name },
  { title: "Ability", cell: ({ of }) => of.ability },
  { title: "Accuracy", figure: true, cell: ({ model }) => percent(model.accuracy) },
  {
    title: "95 % interval",
    figure: true,
    cell: ({ model }) => `${percent(model.accuracyLow)} to ${percent(model.accuracyHigh)}`,
  },
  { title: "Wins", figure: true, cell: ({ model }) => count(model.wins) },
  { title: "Losses", figure: true, cell: ({ model }) => count(model.losses) },
  { title: "State", cell: stateOf },
];

function Reset({ close, done }: { close: () => void; done: (sentence: string) => void }) {
  const reset = async () => {
    const { graded } = await operations.resetLearned({});
    done(`Forgot ${count(graded)} graded disagreements.`);
  };
  return (
    <ConfirmDialog
      title="Reset what is learned?"
      close={close}
      keep="Keep it"
      action="Reset"
      doing="Resetting…"
      run={reset}
    >
      <p>The order of all models is then the one without learning. Recorded outcomes of answers stay.</p>
    </ConfirmDialog>
  );
}
