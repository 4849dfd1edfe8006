import { useState } from "preact/hooks";
import type { RunTextDraft } from "../../../gen/chorus/v1/generation_pb.js";
import { FailureNote } from "../parts/failure-note.tsx";
import { useAction } from "../parts/use-action.ts";
import { activity } from "../rpc.ts";
import { DraftCards, whyNoText } from "../runs/run-text.tsx";
import type { Step } from "./steps.ts";

interface Props {
  /** Identifier of the generation. */
  id: string;
  steps: readonly Step[];
}

/** The drafts of an answer, where texts are kept. They are read on demand, because each read is recorded. */
export function Drafts({ id, steps }: Props) {
  const [drafts, setDrafts] = useState<RunTextDraft[]>();
  const [whyNot, setWhyNot] = useState("");
  const { busy, error, run } = useAction();
  if (!steps.some(({ kind }) => kind === "draft")) return null;
  const show = async () => {
    const { text } = await activity.getRun({ id });
    const reason = whyNoText(text);
    setWhyNot(reason);
    if (!reason) setDrafts((await activity.getRunText({ id })).drafts);
  };
  return (
    <div class="said">
      {drafts && <DraftCards drafts={drafts} steps={steps} />}
      {drafts?.length === 0 && <p class="help">No draft of this answer is kept.</p>}
      {whyNot && <p class="help">{whyNot}</p>}
      {error !== undefined && <FailureNote error={error} />}
      {!drafts && (
        <div class="buttons start">
          <button type="button" class="small" disabled={busy} onClick={() => run(show)}>
            {busy ? "Loading…" : "Show the drafts"}
          </button>
        </div>
      )}
    </div>
  );
}
