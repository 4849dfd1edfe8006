import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { Gauge, Pencil, RefreshCw, Trash2 } from "lucide";
import { type Key, KeyService, ScopeSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { ago, columnAmount, count, day, timeText } from "../format.ts";
import { type Column, DataTable } from "../parts/data-table.tsx";
import { IconButton } from "../parts/icon-button.tsx";
import { Link } from "../parts/link.tsx";
import { pathOf } from "../route.ts";
import { can, currentPerson } from "../session/session.ts";

interface Props {
  keys: readonly Key[];
  showCaps: (key: Key) => void;
  change: (key: Key) => void;
  rotate: (key: Key) => void;
  revoke: (key: Key) => void;
  /** Makes the owner who is signed in the holder, or nobody. */
  takeOver: (key: Key) => void;
}

/** Keys with their usage of the last 30 days. */
export function KeyTable({ keys, ...actions }: Props) {
  const columns: Column<Key>[] = [
    { title: "Name", class: "name", cell: (key) => <Name of={key} /> },
    { title: "Scopes", cell: (key) => <Scopes of={key} /> },
    { title: "Last used", class: "wraps", cell: ({ use }) => <LastUsed at={use?.lastUsedAt} /> },
    { title: "Requests, 30 d", figure: true, cell: (key) => <Requests of={key} /> },
    { title: "Credits, 30 d", figure: true, cell: ({ use }) => columnAmount(use?.credits || "0") },
  ];
  if (can(KeyService.method.revokeKey))
    columns.push({ title: "", class: "actions", cell: (key) => <Actions of={key} {...actions} /> });
  return (
    <DataTable
      label="Keys"
      columns={columns}
      rows={keys}
      keyOf={({ id }) => id}
      isOff={(key) => stateOf(key) !== "active"}
    />
  );
}

function stateOf(key: Key): "active" | "revoked" | "expired" {
  if (key.revokedAt) return "revoked";
  return key.expiresAt && timestampDate(key.expiresAt) <= new Date() ? "expired" : "active";
}

function Name({ of: key }: { of: Key }) {
  return (
    <span>
      <Link to={pathOf("", { key: key.id, period: "30d" })}>{key.name || "Unnamed"}</Link> <State of={key} />
      <span class="soft small more">
        {key.console ? "of this console" : <code>{key.prefix}…</code>}{" "}
        <span class="date">since {day(key.createdAt)}</span>
        {key.expiresAt && stateOf(key) === "active" && (
          <>
            , <span class="date">expires {day(key.expiresAt)}</span>
          </>
        )}
        {key.holder && `, of ${key.holder.name || key.holder.email}`}
        {key.forbidsText && ", text never kept"}
      </span>
    </span>
  );
}

function LastUsed({ at }: { at: Timestamp | undefined }) {
  if (!at) return <span class="soft">never</span>;
  return <span title={timeText(at)}>{ago(at)}</span>;
}

function Requests({ of: { use } }: { of: Key }) {
  const failed = use?.failedRequests ?? 0n;
  return (
    <span>
      {count(use?.requests ?? 0n)}
      {failed > 0n && <span class="soft small more">{count(failed)} failed</span>}
    </span>
  );
}

function Scopes({ of: { scopes } }: { of: Key }) {
  return (
    <span class="chips">
      {scopes.map((scope) => (
        <span key={scope} class="chip">
          {wordOf(ScopeSchema, scope)}
        </span>
      ))}
    </span>
  );
}

/** Since when a key does not work; nothing for one that does. */
function State({ of: key }: { of: Key }) {
  const state = stateOf(key);
  if (state === "active") return null;
  const at = state === "revoked" ? key.revokedAt : key.expiresAt;
  return (
    <span class="tag" title={timeText(at)}>
      {state} {day(at)}
    </span>
  );
}

function Actions({ of: key, showCaps, change, rotate, revoke, takeOver }: { of: Key } & Omit<Props, "keys">) {
  if (key.console || key.revokedAt) return null;
  const name = key.name || "Unnamed";
  const isOthers = key.holder !== undefined && key.holder.id !== currentPerson();
  return (
    <span>
      {isOthers && can(KeyService.method.takeOverKey) && (
        <button type="button" class="quiet small" onClick={() => takeOver(key)} aria-label={`Take over ${name}`}>
          Take over
        </button>
      )}
      <IconButton icon={Gauge} label={`Caps of ${name}`} title="Caps" run={() => showCaps(key)} />
      <IconButton icon={Pencil} label={`Change ${name}`} title="Change" run={() => change(key)} />
      {!isOthers && stateOf(key) === "active" && (
        <IconButton icon={RefreshCw} label={`Rotate ${name}`} title="Rotate" run={() => rotate(key)} />
      )}
      <IconButton
        icon={Trash2}
        label={`Revoke ${name}`}
        title="Revoke"
        class="quiet round danger"
        run={() => revoke(key)}
      />
    </span>
  );
}
