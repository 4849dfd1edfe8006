import { timestampDate } from "@bufbuild/protobuf/wkt";
import { type Key, ScopeSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { wordOf } from "../../../src/json-names.ts";
import { columnAmount, count, day, timeText } from "../format.ts";
import { Link } from "../parts/link.tsx";
import { Scroll } from "../parts/scroll.tsx";
import { pathOf } from "../route.ts";

interface Props {
  keys: readonly Key[];
  rename: (key: Key) => void;
  revoke: (key: Key) => void;
}

/** The state of a key at this timeText. */
export function statusOf(key: Key): "active" | "revoked" | "expired" {
  if (key.revokedAt) return "revoked";
  return key.expiresAt && timestampDate(key.expiresAt) <= new Date() ? "expired" : "active";
}

/** Keys with their usage of the last 30 days. */
export function KeyTable({ keys, rename, revoke }: Props) {
  return (
    <Scroll label="Keys">
      <table>
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">Created</th>
            <th scope="col">Ends</th>
            <th scope="col">Last use</th>
            <th scope="col" class="figure">
              Requests, 30 d
            </th>
            <th scope="col" class="figure">
              Credits, 30 d
            </th>
            <th scope="col">
              <span class="hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <Row key={key.id} of={key} rename={rename} revoke={revoke} />
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Row({ of: key, rename, revoke }: { of: Key } & Omit<Props, "keys">) {
  const status = statusOf(key);
  const name = key.name || "Unnamed";
  const failed = key.use?.failedRequests ?? 0n;
  return (
    <tr class={status}>
      <th scope="row">
        <Link to={pathOf("", { key: key.id, period: "30d" })}>{name}</Link>
        <p class="soft small">
          {key.console ? "playground" : <code>{key.prefix}…</code>}
          {key.scopes.length === 1 && ` · ${wordOf(ScopeSchema, key.scopes[0] ?? 0)} only`}
        </p>
      </th>
      <td>{day(key.createdAt)}</td>
      <td>
        {status === "revoked" ? (
          <span class="tag off" title={timeText(key.revokedAt)}>
            revoked {day(key.revokedAt)}
          </span>
        ) : status === "expired" ? (
          <span class="tag off">expired {day(key.expiresAt)}</span>
        ) : (
          day(key.expiresAt) || <span class="soft">never</span>
        )}
      </td>
      <td>{key.use?.lastUsedAt ? timeText(key.use.lastUsedAt).slice(0, 16) : <span class="soft">never</span>}</td>
      <td class="figure">
        {count(key.use?.requests ?? 0n)}
        {failed > 0n && <p class="soft small">{count(failed)} failed</p>}
      </td>
      <td class="figure">{columnAmount(key.use?.credits || "0")}</td>
      <td class="actions">
        {!key.console && status !== "revoked" && (
          <>
            <button type="button" onClick={() => rename(key)} aria-label={`Rename ${name}`}>
              Rename
            </button>
            <button type="button" class="danger" onClick={() => revoke(key)} aria-label={`Revoke ${name}`}>
              Revoke
            </button>
          </>
        )}
      </td>
    </tr>
  );
}
