import { AnswerShapeSchema, type Generation, Outcome } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema, FinishReasonSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/json-names.ts";
import { columnAmount, count, duration, timeText, words } from "../format.ts";
import { Link } from "../parts/link.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { pathOf } from "../route.ts";
import { endOf } from "./find.ts";

/** A table of requests. */
export function GenerationTable({ generations }: { generations: readonly Generation[] }) {
  return (
    <Scroll label="Requests">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Key</th>
            <th scope="col">Level</th>
            <th scope="col">Answer</th>
            <th scope="col" class="figure">
              Input
            </th>
            <th scope="col" class="figure">
              Output
            </th>
            <th scope="col" class="figure">
              Credits
            </th>
            <th scope="col" class="figure">
              Latency
            </th>
            <th scope="col">Ended</th>
            <th scope="col">Request</th>
          </tr>
        </thead>
        <tbody>
          {generations.map((row) => (
            <tr key={row.id}>
              <td>{timeText(row.at)}</td>
              <td class="name">
                <Link to={pathOf("activity", { key: row.keyId })}>{row.keyName || row.keyId}</Link>
              </td>
              <td title={`requested effort: ${wordOf(EffortSchema, row.effort)}`}>{wordOf(EffortSchema, row.level)}</td>
              <td>
                {words(wordOf(AnswerShapeSchema, row.shape))}
                {row.streamed && <span class="soft"> · streamed</span>}
              </td>
              <td class="figure" title={`${count(row.cachedTokens)} cached`}>
                {count(row.inputTokens)}
              </td>
              <td class="figure">{count(row.outputTokens)}</td>
              <td class="figure">{columnAmount(row.credits, 6)}</td>
              <td class="figure">{duration(row.latencyMs)}</td>
              <td>
                <End row={row} />
              </td>
              <td>
                <code>{row.requestId}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function End({ row }: { row: Generation }) {
  const end = endOf(row);
  if (row.outcome === Outcome.OK) return <>{wordOf(FinishReasonSchema, row.finishReason) || end}</>;
  const isFailure = row.outcome === Outcome.FAILED;
  return <span class={isFailure ? "tag full" : "tag half"}>{isFailure ? end : words(end)}</span>;
}
