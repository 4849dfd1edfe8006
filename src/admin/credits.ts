import { setTimeout as sleep } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type BooksDifference,
  type ClearSpendLimitRequest,
  type CreditService,
  type GrantRequest,
  type GrantResponseSchema,
  LedgerEntryKindSchema,
  type SetSpendLimitRequest,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { SpendPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../contract/failure.ts";
import { numberOf, readEnum, words } from "../contract/json-names.ts";
import { overloaded, type Pool, type Query } from "../store/pool.ts";
import { listLedger } from "./ledger.ts";
import { listLedgerHours } from "./ledger-hours.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText, parseAmount } from "./shared/amount.ts";
import { type Actor, record } from "./shared/audit.ts";
import { checkLabel } from "./shared/fields.ts";
import { findWorkspace, spendLimitMessages } from "./workspaces/workspace.ts";

type CreditAdmin = Admin<typeof CreditService>;

/** Books credit for operators; shows the ledger and sets spend limits for operators and owners. */
export function createCreditAdmin(pool: Pool): CreditAdmin {
  return {
    grant: (request, actor) => book(pool, "grant", request, actor),
    deduct: (request, actor) => book(pool, "adjustment", request, actor),
    purchase: (request, actor) => book(pool, "purchase", request, actor),
    listLedger: listLedger(pool),
    listLedgerHours: listLedgerHours(pool),
    checkBooks: checkBooks(pool),
    setSpendLimit: (request, actor) => changeSpendLimit(pool, request, actor),
    clearSpendLimit: (request, actor) => changeSpendLimit(pool, request, actor),
  };
}

type BookingKind = "grant" | "purchase" | "adjustment";

/** A booking, and the balance after it. For a repeated booking, the present balance. */
type Booked = Pick<MessageInitShape<typeof GrantResponseSchema>, "booking" | "balance">;

/** Longest wait for replicas that return reserved credit which they do not use, in milliseconds. */
const CALL_BACK_MS = 1_000;

/** Pause before another attempt, in milliseconds. */
const RETRY_MS = 10;

/** Books credit once per reference. The same booking again returns the first one. */
async function book(
  pool: Pool,
  kind: BookingKind,
  { workspace, amount: text, reference }: Pick<GrantRequest, "workspace" | "amount" | "reference">,
  actor: Actor,
): Promise<Booked> {
  const size = parseAmount("amount", text, 1n);
  const amount = kind === "adjustment" ? -size : size;
  if (reference === "")
    throw invalid("reference", "reference is required, such as the payment's number. Each reference is booked once.");
  checkLabel("reference", reference);
  const end = performance.now() + CALL_BACK_MS;
  for (;;) {
    const booked = await pool.tx(async (query) => {
      const { id } = await findWorkspace(query, actor, workspace);
      return bookCredit(query, actor, id, { kind, amount, reference });
    });
    if (booked !== "reserved") return booked;
    if (performance.now() > end) throw overloaded(new Error("replicas have not returned reserved credit"));
    await sleep(RETRY_MS);
  }
}

/**
 * Books credit in the transaction of `query`, once per reference. The same booking again returns the first one.
 * @param booking.amount in millionths of a credit. An adjustment takes back granted credit that is neither spent nor
 *   held, and has a negative amount
 * @returns `reserved` when an amount can be taken back as soon as replicas have returned what they do not use, which
 *   they are told when the transaction is committed
 * @throws Failure `invalid_request` with `reference` or `amount`
 */
export async function bookCredit(
  query: Query,
  actor: Actor,
  workspaceId: string,
  { kind, amount, reference }: { kind: BookingKind; amount: bigint; reference: string },
): Promise<Booked | "reserved"> {
  const [row] = await query<{ verdict: string; booked_at: Date; granted: bigint; purchased: bigint; held: bigint }>(
    "select * from book_credit($1, $2, $3, $4)",
    [workspaceId, kind === "purchase" ? kind : "grant", reference, amount],
  );
  if (!row) throw new Error("book_credit returned no row");
  const { verdict, booked_at, granted, purchased, held } = row;
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
  const at = timestampFromDate(booked_at);
  const bookedBefore = verdict === "earlier";
  return {
    booking: { kind: numberOf(LedgerEntryKindSchema, kind), reference, amount: amountText(amount), at, bookedBefore },
    balance: { granted: amountText(granted), purchased: amountText(purchased), held: amountText(held) },
  };
}

/** Timeout of the check in milliseconds. Half a million requests take about 10 s. */
const CHECK_MS = 300_000;

/** Checks that ledger, accounts, grants and usage agree, of one workspace or of all. Reads all of their rows. */
function checkBooks(pool: Pool): CreditAdmin["checkBooks"] {
  return async ({ workspace }, actor) => {
    const id = workspace === "" ? null : (await findWorkspace(pool.query, actor, workspace)).id;
    const differences = await pool.tx(
      (query) =>
        query<Omit<BooksDifference, "$typeName">>(
          `select c.check_name as check, coalesce(w.name, c.workspace_id) as workspace, c.subject, c.expected, c.found
           from check_books($1) c left join workspaces w on w.id = c.workspace_id
           order by workspace, c.check_name, c.subject`,
          [id],
        ),
      { timeoutMs: CHECK_MS },
    );
    return { differences };
  };
}

/**
 * Limits the purchased credit that requests may spend in a calendar period. It applies to requests admitted afterwards.
 * @returns all spend limits in force
 */
async function changeSpendLimit(pool: Pool, request: SetSpendLimitRequest | ClearSpendLimitRequest, actor: Actor) {
  const period = readEnum("period", SpendPeriodSchema, request.period);
  if (period === "")
    throw invalid("period", `period must be one of ${[...words(SpendPeriodSchema).values()].join(", ")}.`);
  const amount = "amount" in request ? parseAmount("amount", request.amount, 0n) : undefined;
  return pool.tx(async (query) => {
    const { id } = await findWorkspace(query, actor, request.workspace);
    const [row] = await query<{ limits: Record<string, number> }>(
      `update accounts set spend_limits = (spend_limits - $2::text)
         || case when $3::bigint is null then '{}' else jsonb_build_object($2, $3) end
       where workspace_id = $1 returning spend_limits as limits`,
      [id, period, amount ?? null],
    );
    const action = amount === undefined ? "spend_limit.clear" : "spend_limit.set";
    const details = amount === undefined ? { period } : { period, amount: amountText(amount) };
    await record(query, actor, id, action, details);
    await query("select call_back($1)", [id]);
    return { spendLimits: spendLimitMessages(row?.limits ?? {}) };
  });
}
