import type { Generation } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { columnAmount, count, duration, timeText, words } from "../format.ts";
import { Link } from "../parts/link.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { pathOf } from "../route.ts";

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
              <td title={`requested effort: ${row.effort}`}>{row.level}</td>
              <td>
                {words(row.shape)}
                {row.streamed && <span class="soft"> · streamed</span>}
              </td>
              <td class="figure" title={`${count(row.cachedTokens)} cached`}>
                {count(row.inputTokens)}
              </td>
              <td class="figure">{count(row.outputTokens)}</td>
              <td class="figure">{columnAmount(row.credits, 6)}</td>
              <td class="figure">{duration(row.latencyMs)}</td>
              <td>
                <Outcome row={row} />
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

function Outcome({ row: { outcome, finishReason } }: { row: Generation }) {
  if (outcome === "ok") return <>{finishReason || "ok"}</>;
  const isMild = outcome === "cut_short" || outcome === "caller_gone";
  return <span class={isMild ? "tag half" : "tag full"}>{isMild ? words(outcome) : outcome}</span>;
}
