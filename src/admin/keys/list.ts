import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { KeyUseSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { hashSecret } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import type { Pool } from "../../store/pool.ts";
import { amountText } from "../shared/amount.ts";
import { confinedTo, developerOf } from "../shared/audit.ts";
import { checkLabel } from "../shared/fields.ts";
import { pageOf, readPageToken, sizeOfPage } from "../shared/page.ts";
import { MS } from "../shared/period.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { COLUMNS, type KeyAdmin, type KeyRow, keyMessage } from "./key.ts";

/**
 * Lists keys in pages, newest first, with revoked and expired ones. An operator who names no workspace gets the keys of
 * all; a developer gets their own.
 */
export function listKeys(pool: Pool, clock: Clock): KeyAdmin["listKeys"] {
  return async ({ workspace, pageSize, pageToken, search, activeOnly, withUse }, actor) => {
    checkLabel("search", search);
    const size = sizeOfPage(pageSize);
    const [time, last = ""] = readPageToken(pageToken, /^(\d{1,14}) (key_[0-9a-f]+)$/) ?? [];
    const isAll = workspace === "" && !confinedTo(actor);
    const found = isAll ? undefined : await findWorkspace(pool.query, actor, workspace);
    const now = clock();
    const keys = await pool.query<KeyRow>(
      `select ${COLUMNS} from api_keys k join workspaces w on w.id = k.workspace_id
       where ($1::text is null or k.workspace_id = $1) and ($2::timestamptz is null or (k.created_at, k.id) < ($2, $3))
         and ($5::text is null or lower(k.name) like lower($5) or k.prefix like $5 or k.secret_hash = $6
           or k.id = $9)
         and ($7::timestamptz is null or (k.revoked_at is null and (k.expires_at is null or k.expires_at > $7)))
         and ($8::text is null or k.person_id = $8)
       order by k.created_at desc, k.id desc limit $4`,
      [
        found?.id ?? null,
        time === undefined ? null : new Date(Number(time)),
        last,
        size + 1,
        ...(search === "" ? [null, null] : [prefixPattern(search), hashSecret(search)]),
        activeOnly ? new Date(now) : null,
        developerOf(actor) ?? null,
        search,
      ],
    );
    const { rows, nextPageToken } = pageOf(keys, size, (key) => `${key.createdAt.getTime()} ${key.id}`);
    const uses = withUse ? await readUse(pool, rows, now) : undefined;
    const messages = rows.map((row) => keyMessage(row, uses?.get(row.id)));
    return { keys: messages, nextPageToken };
  };
}

/** Pattern for `like` that matches texts with a prefix (PostgreSQL documentation, section 9.7.1). */
function prefixPattern(text: string): string {
  return `${text.replace(/[\\%_]/g, "\\$&")}%`;
}

/** Days over which the use of a key is summed up, including today. */
const DAYS = 30;

/** Recent use of a key. */
interface UseRow {
  id: string;
  /** Start of the minute of the last admitted request; of its day, when the minutes have been deleted. Null: never. */
  lastUsedAt: Date | null;
  requests: bigint;
  failedRequests: bigint;
  inputTokens: bigint;
  outputTokens: bigint;
  /** Charged, in millionths of a credit. */
  charged: bigint;
}

/**
 * Reads the recent use of keys from the rollups. An index finds the rows of each key (100 keys take about 5 ms), so the
 * use of a key need not be written anywhere else.
 * @param keys an operator's page may hold keys of several workspaces
 * @param now milliseconds since 1970
 * @returns use by identifier, for every given key
 */
async function readUse(
  pool: Pool,
  keys: readonly KeyRow[],
  now: number,
): Promise<ReadonlyMap<string, MessageInitShape<typeof KeyUseSchema>>> {
  const from = new Date((Math.floor(now / MS.day) - DAYS + 1) * MS.day);
  const found = new Map<string, MessageInitShape<typeof KeyUseSchema>>();
  for (const [workspaceId, group] of Map.groupBy(keys, (key) => key.workspaceId)) {
    const rows = await pool.query<UseRow>(
      `select k.id, coalesce(minutes.start, days.start) as "lastUsedAt", sums.*
       from unnest($2::text[]) as k (id)
         left join lateral (
           select start from usage where workspace_id = $1 and unit = 'day' and key_id = k.id
           order by start desc limit 1) days on true
         left join lateral (
           select start from usage where workspace_id = $1 and unit = 'minute' and key_id = k.id
             and start >= days.start and start < days.start + interval '24 hours'
           order by start desc limit 1) minutes on true
         cross join lateral (
           select coalesce(sum(requests), 0)::bigint as requests,
             coalesce(sum(failed_requests), 0)::bigint as "failedRequests",
             coalesce(sum(input_tokens), 0)::bigint as "inputTokens",
             coalesce(sum(output_tokens), 0)::bigint as "outputTokens",
             coalesce(sum(credits_micro), 0)::bigint as charged
           from usage where workspace_id = $1 and unit = 'day' and key_id = k.id and start >= $3) sums`,
      [workspaceId, group.map(({ id }) => id), from],
    );
    for (const { id, lastUsedAt, charged, ...figures } of rows) {
      found.set(id, {
        ...figures,
        ...(lastUsedAt ? { lastUsedAt: timestampFromDate(lastUsedAt) } : {}),
        startTime: timestampFromDate(from),
        credits: amountText(charged),
      });
    }
  }
  return found;
}
