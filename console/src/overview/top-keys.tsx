import type { ListTopKeysResponse } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { columnAmount, count } from "../format.ts";
import type { Loaded } from "../load.ts";
import { Empty } from "../parts/empty.tsx";
import { Pending } from "../parts/pending.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { narrow } from "../route.ts";

/** The keys with the most usage. @param chosen identifier of the key that the charts show; empty for all */
export function TopKeys({ top, chosen }: { top: Loaded<ListTopKeysResponse>; chosen: string }) {
  return (
    <section>
      <h2>Keys with the most usage</h2>
      <Pending of={top} what="keys">
        {({ keys }) =>
          keys.length === 0 ? (
            <Empty title="No key was used in this period." />
          ) : (
            <Scroll label="Keys with the most usage">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Key</th>
                    <th scope="col" class="figure">
                      Credits
                    </th>
                    <th scope="col" class="figure">
                      Answered
                    </th>
                    <th scope="col" class="figure">
                      Failed
                    </th>
                    <th scope="col" class="figure">
                      Input tokens
                    </th>
                    <th scope="col" class="figure">
                      Output tokens
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {keys.map(({ keyId, keyName, totals }) => (
                    <tr key={keyId}>
                      <th scope="row">
                        <button
                          type="button"
                          class="link"
                          aria-pressed={keyId === chosen}
                          onClick={() => narrow({ key: keyId === chosen ? undefined : keyId })}
                        >
                          {keyName || keyId}
                        </button>
                      </th>
                      <td class="figure">{columnAmount(totals?.credits ?? 0)}</td>
                      <td class="figure">{count(totals?.requests ?? 0)}</td>
                      <td class="figure">{count(totals?.failedRequests ?? 0)}</td>
                      <td class="figure">{count(totals?.inputTokens ?? 0)}</td>
                      <td class="figure">{count(totals?.outputTokens ?? 0)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
          )
        }
      </Pending>
    </section>
  );
}
