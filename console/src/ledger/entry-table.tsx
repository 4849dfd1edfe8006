import { type LedgerEntry, LedgerEntryKindSchema } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../../../src/json-names.ts";
import { amount, timeText } from "../format.ts";
import { Scroll } from "../parts/scroll.tsx";

/** A table of movements. @param holds whether to show the column of held credit */
export function EntryTable({ entries, holds }: { entries: readonly LedgerEntry[]; holds: boolean }) {
  return (
    <Scroll label="Movements">
      <table>
        <thead>
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Movement</th>
            <th scope="col" class="figure">
              Granted
            </th>
            <th scope="col" class="figure">
              Purchased
            </th>
            {holds && (
              <th scope="col" class="figure">
                Held
              </th>
            )}
            <th scope="col">Reference</th>
          </tr>
        </thead>
        <tbody>
          {entries.map((entry) => (
            <tr key={entry.id}>
              <td>{timeText(entry.at)}</td>
              <td>{wordOf(LedgerEntryKindSchema, entry.kind)}</td>
              <Change by={entry.granted} />
              <Change by={entry.purchased} />
              {holds && <Change by={entry.held} />}
              <td>
                <code>{entry.reference}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Change({ by }: { by: string }) {
  const value = Number(by);
  return (
    <td class={value > 0 ? "figure plus" : "figure"}>
      {value === 0 ? <span class="soft">0</span> : `${value > 0 ? "+" : ""}${amount(by)}`}
    </td>
  );
}
