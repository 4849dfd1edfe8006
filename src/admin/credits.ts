import { setTimeout as sleep } from "node:timers/promises";
import { invalid } from "../failure.ts";
import { orOverloaded, overloaded, type Pool, type Query } from "../store/pool.ts";
import { amountText, parseAmount } from "./amount.ts";
import { type Actor, record } from "./audit.ts";
import { checkLabel } from "./fields.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage, timeOf } from "./page.ts";
import { findWorkspace, readSpendLimits, SPEND_PERIODS, type SpendLimits } from "./workspaces/workspaces.ts";

export type BookingKind = "grant" | "purchase" | "adjustment";

/** Amounts are in millionths of a credit, here and below. */
export interface Balance {
  granted: bigint;
  purchased: bigint;
  held: bigint;
}

export interface Booking {
  kind: BookingKind;
  reference: string;
  amount: bigint;
  at: Date;
  /** Whether the booking is an earlier one with the same reference. */
  bookedBefore: boolean;
  /** Balance after the booking. For a repeated booking, the present balance. */
  balance: Balance;
}

/** A movement of credit, with the change of each part of the balance. */
export interface LedgerEntry extends Balance {
  id: bigint;
  at: Date;
  kind: BookingKind | "hold" | "settlement" | "release";
  reference: string;
  /** Granted and purchased credit after the movement. */
  balance: bigint;
}

/** Two figures that must be equal and are not, or a figure beyond its bound. */
export interface BooksDifference {
  /** Name of the check, such as `granted = ledger`. */
  check: string;
  /** Name of the workspace, or its identifier when the workspace was deleted. */
  workspace: string;
  /**
   * What in the workspace was checked: a request, a reference, a period or a key with a time. Empty: the whole
   * workspace.
   */
  subject: string;
  /** In credits, or a count. */
  expected: string;
  found: string;
}

interface LedgerRequest {
  workspace: string;
  pageSize?: number;
  pageToken?: string;
  /** Leaves out holds and releases. */
  chargesOnly?: boolean;
  /** Inclusive. */
  from?: Date | undefined;
  /** Exclusive. */
  to?: Date | undefined;
}

interface LedgerPage {
  entries: LedgerEntry[];
  nextPageToken: string | undefined;
}

/**
 * Credit of workspaces. Requests state amounts as exact decimal text, and a workspace by identifier or name, which an
 * owner may leave empty. Every method throws Failure `invalid_request` with the field, `unknown_entity` for an unknown
 * workspace, and `overloaded` when the database is unavailable.
 */
export interface Credit {
  /**
   * Books credit once per reference. The same booking again returns the first one.
   * @param request.amount above 0; an adjustment deducts it from granted credit that is neither spent nor held
   * @param request.reference chosen by the operator, 1 to 200 characters
   */
  book(
    actor: Actor,
    request: { workspace: string; kind: BookingKind; amount: string; reference: string },
  ): Promise<Booking>;
  /** Lists movements in pages, newest first. */
  ledger(actor: Actor, request: LedgerRequest): Promise<LedgerPage>;
  /**
   * Checks that ledger, accounts, grants and usage agree, with `check_books()`. Reads all of their rows.
   * @param workspace empty: all workspaces
   * @returns what does not agree; empty when everything does
   */
  check(actor: Actor, workspace: string): Promise<BooksDifference[]>;
  /**
   * Limits the purchased credit that requests may spend in a calendar period. It applies to requests admitted
   * afterwards.
   * @param request.amount undefined: no limit
   * @returns all spend limits in force
   */
  setSpendLimit(
    actor: Actor,
    request: { workspace: string; period: string; amount: string | undefined },
  ): Promise<SpendLimits>;
}

/** Longest wait for replicas that return reserved credit which they do not use, in milliseconds. */
const CALL_BACK_MS = 1_000;

/** Pause before another attempt, in milliseconds. */
const RETRY_MS = 10;

/** Timeout of the check in milliseconds. Half a million requests take about 10 s. */
const CHECK_MS = 300_000;

export function createCredit(pool: Pool): Credit {
  return {
    async book(actor, { workspace, kind, amount: text, reference }) {
      const size = parseAmount("amount", text, 1n);
      const amount = kind === "adjustment" ? -size : size;
      if (reference === "")
        throw invalid(
          "reference",
          "reference is required, such as the payment's number. Each reference is booked once.",
        );
      checkLabel("reference", reference);
      const book = () =>
        orOverloaded(
          pool.tx(async (query) => {
            const { id } = await findWorkspace(query, actor, workspace);
            return bookCredit(query, actor, id, { kind, amount, reference });
          }),
        );
      const end = performance.now() + CALL_BACK_MS;
      for (;;) {
        const booking = await book();
        if (booking !== "reserved") return booking;
        if (performance.now() > end) throw overloaded(new Error("replicas have not returned reserved credit"));
        await sleep(RETRY_MS);
      }
    },

    ledger: (actor, request) => readLedger(pool, actor, request),

    async check(actor, workspace) {
      if (workspace === "") return orOverloaded(checkBooks(pool, null));
      const { id } = await orOverloaded(findWorkspace(pool.query, actor, workspace));
      return orOverloaded(checkBooks(pool, id));
    },

    async setSpendLimit(actor, { workspace, period, amount: text }) {
      if (!SPEND_PERIODS.some((known) => known === period)) {
        throw invalid("period", `period must be one of ${SPEND_PERIODS.join(", ")}.`);
      }
      const amount = text === undefined ? undefined : parseAmount("amount", text, 0n);
      return orOverloaded(
        pool.tx(async (query) => {
          const { id } = await findWorkspace(query, actor, workspace);
          const [row] = await query<{ limits: Record<string, number> }>(
            `update accounts set spend_limits = (spend_limits - $2::text)
               || case when $3::bigint is null then '{}' else jsonb_build_object($2, $3) end
             where workspace_id = $1 returning spend_limits as limits`,
            [id, period, amount ?? null],
          );
          const action = amount === undefined ? "spend_limit.clear" : "spend_limit.set";
          await record(query, actor, id, action, {
            period,
            ...(amount === undefined ? {} : { amount: amountText(amount) }),
          });
          await query("select call_back($1)", [id]);
          return readSpendLimits(row?.limits ?? {});
        }),
      );
    },
  };
}

async function readLedger(
  pool: Pool,
  actor: Actor,
  { workspace, pageSize, pageToken, chargesOnly = false, from, to }: LedgerRequest,
): Promise<LedgerPage> {
  const size = sizeOfPage(pageSize);
  const [micros, entry] = readPageToken(pageToken, /^(\d{1,16}) (\d{1,18})$/) ?? [];
  const { id } = await orOverloaded(findWorkspace(pool.query, actor, workspace));
  const found = await orOverloaded(
    pool.query<LedgerEntry & { micros: bigint }>(
      // The balance after an entry is the present balance without the changes that are newer than the entry.
      `with page as (
         select * from ledger
         where workspace_id = $1 and ($2::timestamptz is null or (at <= $2 and (at, id) < ($2, $3)))
           and ($6::timestamptz is null or at >= $6) and ($7::timestamptz is null or at < $7)
           and not ($4 and kind in ('hold', 'release'))
         order by at desc, id desc limit $5
       ), newest as (select at, id from page order by at desc, id desc limit 1)
       select id, at, kind, reference, granted_micro as granted, purchased_micro as purchased, held_micro as held,
         ${microsOf("at")} as micros,
         ((select granted_micro + purchased_micro from accounts where workspace_id = $1)
           - coalesce((select sum(newer.granted_micro + newer.purchased_micro) from ledger newer, newest
               where newer.workspace_id = $1 and newer.at >= newest.at
                 and (newer.at, newer.id) > (newest.at, newest.id)), 0)
           - coalesce(sum(granted_micro + purchased_micro)
               over (order by at desc, id desc rows between unbounded preceding and 1 preceding), 0))::bigint as balance
       from page
       order by at desc, id desc`,
      [
        id,
        micros === undefined ? null : timeOf(BigInt(micros)),
        entry ?? null,
        chargesOnly,
        size + 1,
        from ?? null,
        to ?? null,
      ],
    ),
  );
  const { rows, nextPageToken } = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
  return { entries: rows.map(({ micros: _, ...row }) => row), nextPageToken };
}

/**
 * Books credit in the transaction of `query`; see `Credit.book`.
 * @returns `reserved` when an amount can be taken back as soon as replicas have returned what they do not use, which
 *   they are told when the transaction is committed
 * @throws Failure `invalid_request` with `reference` or `amount`
 */
export async function bookCredit(
  query: Query,
  actor: Actor,
  workspaceId: string,
  { kind, amount, reference }: { kind: BookingKind; amount: bigint; reference: string },
): Promise<Booking | "reserved"> {
  const [row] = await query<Balance & { verdict: string; booked_at: Date }>(
    "select * from book_credit($1, $2, $3, $4)",
    [workspaceId, kind === "purchase" ? kind : "grant", reference, amount],
  );
  if (!row) throw new Error("book_credit returned no row");
  const { verdict, booked_at: at, granted, purchased, held } = row;
  switch (verdict) {
    case "other":
      throw invalid(
        "reference",
        "Something else was booked under this reference. Use another reference, or the same kind and amount.",
      );
    case "too_low": {
      const available = granted > held ? granted - held : 0n;
      throw invalid(
        "amount",
        `Only ${amountText(available)} credits can be taken back: the rest is spent, or held by requests in flight.`,
      );
    }
    case "reserved":
      return verdict;
    case "too_high":
      throw invalid("amount", "The workspace would have more than 1,000,000,000,000 credits. Book less.");
    case "booked":
      await record(query, actor, workspaceId, `credit.${kind}`, { reference, amount: amountText(amount) });
  }
  return {
    kind,
    reference,
    amount,
    at,
    bookedBefore: verdict === "earlier",
    balance: { granted, purchased, held },
  };
}

/** @param workspaceId null: all workspaces */
async function checkBooks(pool: Pool, workspaceId: string | null): Promise<BooksDifference[]> {
  return pool.tx(
    (query) =>
      query<BooksDifference>(
        `select c.check_name as check, coalesce(w.name, c.workspace_id) as workspace, c.subject, c.expected, c.found
         from check_books($1) c left join workspaces w on w.id = c.workspace_id
         order by workspace, c.check_name, c.subject`,
        [workspaceId],
      ),
    { timeoutMs: CHECK_MS },
  );
}
