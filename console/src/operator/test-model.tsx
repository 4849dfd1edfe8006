import type { TestModelResponse } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { columnAmount, count, duration } from "../format.ts";
import { useLoad } from "../load.ts";
import { Detail } from "../parts/details.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { Note } from "../parts/note.tsx";
import { Skeleton } from "../parts/skeleton.tsx";
import { operations } from "./rpc.ts";

/** Tests a model while it is open, and shows what has come of it. */
export function TestDialog({ model, close }: { model: string; close: () => void }) {
  const { data, error, loading, reload } = useLoad((signal) => operations.testModel({ model }, { signal }), model);
  return (
    <Dialog title={`Test ${model}`} close={close}>
      {loading ? (
        <>
          <p role="status">The model is asked for one word. This takes 30 seconds at most.</p>
          <Skeleton lines={3} />
        </>
      ) : error !== undefined ? (
        <FailureNote error={error} />
      ) : (
        data && <Tested of={data} />
      )}
      <div class="buttons">
        <button type="button" disabled={loading} onClick={reload}>
          Test again
        </button>
        <button type="button" class="primary" onClick={close}>
          Done
        </button>
      </div>
    </Dialog>
  );
}

function Tested({ of }: { of: TestModelResponse }) {
  return (
    <>
      <div role="status">{of.failure ? <Refused of={of.failure} /> : <span class="tag good">It answers</span>}</div>
      <dl class="details">
        <Detail name="Time">{duration(of.durationMs)}</Detail>
        <Detail name="Tokens">
          {count(of.inputTokens)} in, {count(of.outputTokens)} out
        </Detail>
        {of.costUsd !== undefined && <Detail name="Cost">{columnAmount(of.costUsd, 6)} USD</Detail>}
        {of.servedVersion !== "" && <Detail name="Answered as">{of.servedVersion}</Detail>}
      </dl>
    </>
  );
}

function Refused({ of: { status, code, message, action } }: { of: NonNullable<TestModelResponse["failure"]> }) {
  return (
    <Note tone="bad">
      <p>
        <strong>It does not answer: {[status, code].filter(Boolean).join(" ") || "failed"}.</strong>
      </p>
      {message && <p>The vendor says: {message}.</p>}
      <p>{action}</p>
    </Note>
  );
}
