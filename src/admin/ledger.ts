import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CreditService,
  LedgerEntryKind,
  LedgerEntryKindSchema,
  type ListLedgerRequest,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { invalid } from "../contract/failure.ts";
import { numberOf, wordOf } from "../contract/json-names.ts";
import type { Pool } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText } from "./shared/amount.ts";
import { readTimestamp } from "./shared/fields.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage, timeOf } from "./shared/page.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

type CreditAdmin = Admin<typeof CreditService>;

/** A movement of credit, with the change of each part of the balance. Amounts are in millionths of a credit. */
interface LedgerRow {
  id: bigint;
  at: Date;
  micros: bigint;
  kind: string;
  reference: string;
  granted: bigint;
  purchased: bigint;
  held: bigint;
}

/** Most entries to sum for the balances of a page. Summing them takes about 200 ms. */
const MAX_SUMMED = 100_000;

/** Position of a row: its time, its identifier, and if it is known, the balance before it. */
const PLACE = /^(\d{1,16}) (\d{1,18})(?: (-?[0-3]?\d{1,18}))?$/;

/** Lists movements in pages, newest first. */
export function listLedger(pool: Pool): CreditAdmin["listLedger"] {
  return async (request, actor) => {
    const [from, to] = [readTimestamp("from", request.startTime), readTimestamp("to", request.endTime)];
    const kinds = readKinds(request);
    const size = sizeOfPage(request.pageSize);
    const [micros, last, before] = readPageToken(request.pageToken, PLACE) ?? [];
    const { id } = await findWorkspace(pool.query, actor, request.workspace);
    const place = { time: timeOf(micros), id: last, before };
    const values = [id, place.time, last ?? null, request.chargesOnly, size + 1, from ?? null, to ?? null];
    const found = await pool.query<LedgerRow>(
      `select id, at, kind, reference, granted_micro as granted, purchased_micro as purchased, held_micro as held,
         ${microsOf("at")} as micros
       from ledger
       where workspace_id = $1 and ($2::timestamptz is null or (at <= $2 and (at, id) < ($2, $3)))
         and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7)
         and not ($4 and kind in ('hold', 'release')) ${conditionOf(kinds)}
       order by at desc, id desc limit $5`,
      kinds.length > 0 ? [...values, kinds] : values,
    );
    const balances = await balancesOf(pool, id, found.slice(0, size), place);
    const { rows, nextPageToken } = pageOf(found, size, (row) => placeOf(row, balances.get(row.id)));
    const entries = rows.map(({ id, at, kind, reference, granted, purchased, held }) => ({
      id: `${id}`,
      at: timestampFromDate(at),
      kind: numberOf(LedgerEntryKindSchema, kind),
      reference,
      granted: amountText(granted),
      purchased: amountText(purchased),
      held: amountText(held),
      balance: amountOrNone(balances.get(id)),
    }));
    return { entries, nextPageToken };
  };
}

interface Place {
  /** Null on the first page. */
  time: string | null;
  id: string | undefined;
  /** Balance before the entry, in millionths of a credit; undefined if it is not known. */
  before: string | undefined;
}

/**
 * Granted and purchased credit after each entry of a page: that before the last entry of the previous page, or the
 * present one, without the changes that are newer than the entry.
 * @param page in its order; not all entries that lie between need to be in it
 * @returns balances by entry; none for those behind too many entries
 */
async function balancesOf({ query }: Pool, workspaceId: string, page: readonly LedgerRow[], place: Place) {
  const oldest = page.at(-1);
  if (!oldest || (place.time && place.before === undefined)) return new Map<bigint, bigint>();
  const rows = await query<{ id: bigint; balance: bigint }>(
    `with newest as (
       select at, id, granted_micro + purchased_micro as change from ledger
       where workspace_id = $1 and at >= $2 and (at, id) >= ($2, $3)
         and ($4::timestamptz is null or (at <= $4 and (at, id) < ($4, $5)))
       order by at desc, id desc limit ${MAX_SUMMED}
     ), summed as (
       select id, coalesce(sum(change) over (order by at desc, id desc
         rows between unbounded preceding and 1 preceding), 0)::bigint as newer
       from newest
     )
     select id, coalesce($6, (select granted_micro + purchased_micro from accounts where workspace_id = $1)) - newer
       as balance
     from summed where id = any ($7)`,
    [
      ...[workspaceId, timeOf(`${oldest.micros}`), oldest.id, place.time, place.id ?? null, place.before ?? null],
      page.map(({ id }) => id),
    ],
  );
  return new Map(rows.map(({ id, balance }) => [id, balance]));
}

function amountOrNone(micro: bigint | undefined): string {
  return micro === undefined ? "" : amountText(micro);
}

function placeOf({ micros, id, granted, purchased }: LedgerRow, balance: bigint | undefined): string {
  return `${micros} ${id}${balance === undefined ? "" : ` ${balance - granted - purchased}`}`;
}

const { GRANT, PURCHASE, ADJUSTMENT, SETTLEMENT } = LedgerEntryKind;
const BOOKINGS: readonly LedgerEntryKind[] = [GRANT, PURCHASE, ADJUSTMENT];
const CHOICES = [...BOOKINGS, SETTLEMENT];

/** The kinds to list, as the store names them; empty: all. @throws Failure `invalid_request` with `kinds[…]` */
function readKinds({ kinds }: ListLedgerRequest): string[] {
  const nameOf = (kind: LedgerEntryKind) => wordOf(LedgerEntryKindSchema, kind);
  const wrong = kinds.findIndex((kind) => !CHOICES.includes(kind));
  if (wrong >= 0) throw invalid(`kinds[${wrong}]`, `kinds must be among ${CHOICES.map(nameOf).join(", ")}.`);
  return kinds.map(nameOf);
}

/** A condition on the kind. That for bookings alone says so, because an index of bookings answers it. */
function conditionOf(kinds: readonly string[]): string {
  if (kinds.length === 0) return "";
  const isOfBookings = !kinds.includes(wordOf(LedgerEntryKindSchema, SETTLEMENT));
  return `and kind = any ($8::text[]) ${isOfBookings ? "and kind in ('grant', 'purchase', 'adjustment')" : ""}`;
}
