import { timestampDate } from "@bufbuild/protobuf/wkt";
import { AnswerShapeSchema, type Generation, Outcome } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count, duration, timeText, words } from "../format.ts";
import { useLoad } from "../load.ts";
import { Copy } from "../parts/copy.tsx";
import { Detail } from "../parts/details.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Link } from "../parts/link.tsx";
import { Pending } from "../parts/pending.tsx";
import { pathOf } from "../route.ts";
import { activity } from "../rpc.ts";
import { End } from "./generation-table.tsx";

interface Props {
  id: string;
  /** The request, if the page has it. A link can lead to one that is further back. */
  listed: Generation | undefined;
  close: () => void;
}

/** A request in a drawer. */
export function GenerationDrawer({ id, listed, close }: Props) {
  return (
    <Dialog title="Request" kind="drawer" close={close}>
      {listed ? <Facts of={listed} close={close} /> : <Unlisted id={id} close={close} />}
    </Dialog>
  );
}

function Unlisted({ id, close }: Omit<Props, "listed">) {
  const run = useLoad((signal) => activity.getRun({ id }, { signal }), id);
  return (
    <Pending of={run} what="the request">
      {({ generation }) => generation && <Facts of={generation} close={close} />}
    </Pending>
  );
}

/** Everything that is known of a request. */
function Facts({ of: row, close }: { of: Generation; close: () => void }) {
  const wasCharged = Number(row.credits) > 0;
  const isFree = row.outcome === Outcome.FAILED && !wasCharged;
  return (
    <>
      <dl class="details">
        <Detail name="Outcome">
          <End row={row} /> {isFree && <span class="soft">not charged</span>}
        </Detail>
        <Detail name="Time">{timeText(row.at)}</Detail>
        <Detail name="Request" copy={row.requestId}>
          <code>{row.requestId}</code>
        </Detail>
        <Detail name="Generation" copy={row.id}>
          <code>{row.id}</code>
        </Detail>
        <Detail name="Key" copy={row.keyId}>
          <Link to={pathOf("activity", { key: row.keyId })}>{row.keyName || row.keyId}</Link>
        </Detail>
        {row.user !== "" && (
          <Detail name="User" copy={row.user}>
            {row.user}
          </Detail>
        )}
        {Object.entries(row.tags).map(([name, value]) => (
          <Detail key={name} name={`Tag ${name}`} copy={value}>
            {value}
          </Detail>
        ))}
        <Detail name="Level">
          {wordOf(EffortSchema, row.level)}
          <span class="soft"> (effort {wordOf(EffortSchema, row.effort)})</span>
        </Detail>
        <Detail name="Answer">
          {words(wordOf(AnswerShapeSchema, row.shape))}
          {row.streamed && ", streamed"}
        </Detail>
        {row.modelCalls !== undefined && <Detail name="Calls of models">{count(row.modelCalls)}</Detail>}
        <Detail name="Input tokens">
          {count(row.inputTokens)}
          {row.cachedTokens > 0n && <span class="soft"> ({count(row.cachedTokens)} cached)</span>}
        </Detail>
        <Detail name="Output tokens">{count(row.outputTokens)}</Detail>
        <Detail name="Credits">{amount(row.credits)}</Detail>
        <Detail name="Latency">{duration(row.latencyMs)}</Detail>
      </dl>
      <div class="buttons start">
        <Link to={pathOf(`runs/${row.id}`)} class="button primary" followed={close}>
          How it was answered
        </Link>
        <Copy text={linkTo(row)} label="Copy the link" />
      </div>
    </>
  );
}

/** Address that shows this request alone. */
function linkTo({ id, at }: Generation): string {
  const ms = at ? timestampDate(at).getTime() : 0;
  const from = new Date(ms).toISOString();
  const to = new Date(ms + 1).toISOString();
  return location.origin + pathOf("activity", { from, to, request: id });
}
