import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type BalanceSchema,
  type BookingSchema,
  CheckBooksResponseSchema,
  ClearSpendLimitResponseSchema,
  type CreditService,
  DeductResponseSchema,
  GrantResponseSchema,
  LedgerEntryKindSchema,
  ListLedgerResponseSchema,
  PurchaseResponseSchema,
  SetSpendLimitResponseSchema,
  type SpendLimitSettingSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { SpendPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../json-names.ts";
import { amountText } from "./amount.ts";
import type { Booking, Credit } from "./credits.ts";
import { readEnum, readTimestamp } from "./read-field.ts";
import type { Admin } from "./service.ts";
import type { SpendLimits } from "./workspaces/workspaces.ts";

export type CreditAdmin = Admin<typeof CreditService>;

/** Books credit for operators; shows the ledger and sets spend limits for operators and owners. */
export function createCreditAdmin(credit: Credit): CreditAdmin {
  return {
    async grant({ workspace, amount, reference }, actor) {
      const booking = await credit.book(actor, { workspace, kind: "grant", amount, reference });
      return create(GrantResponseSchema, bookingMessages(booking));
    },
    async deduct({ workspace, amount, reference }, actor) {
      const booking = await credit.book(actor, { workspace, kind: "adjustment", amount, reference });
      return create(DeductResponseSchema, bookingMessages(booking));
    },
    async purchase({ workspace, amount, reference }, actor) {
      const booking = await credit.book(actor, { workspace, kind: "purchase", amount, reference });
      return create(PurchaseResponseSchema, bookingMessages(booking));
    },
    async listLedger({ startTime, endTime, ...request }, actor) {
      const period = { from: readTimestamp("from", startTime), to: readTimestamp("to", endTime) };
      const page = await credit.ledger(actor, { ...request, ...period });
      return create(ListLedgerResponseSchema, {
        entries: page.entries.map(({ id, at, kind, reference, granted, purchased, held, balance }) => ({
          id: `${id}`,
          at: timestampFromDate(at),
          kind: numberOf(LedgerEntryKindSchema, kind),
          reference,
          granted: amountText(granted),
          purchased: amountText(purchased),
          held: amountText(held),
          balance: amountText(balance),
        })),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
    async checkBooks({ workspace }, actor) {
      return create(CheckBooksResponseSchema, { differences: await credit.check(actor, workspace) });
    },
    async setSpendLimit({ workspace, period, amount }, actor) {
      const limits = await credit.setSpendLimit(actor, { workspace, period: readPeriod(period), amount });
      return create(SetSpendLimitResponseSchema, { spendLimits: spendLimitMessages(limits) });
    },
    async clearSpendLimit({ workspace, period }, actor) {
      const limits = await credit.setSpendLimit(actor, { workspace, period: readPeriod(period), amount: undefined });
      return create(ClearSpendLimitResponseSchema, { spendLimits: spendLimitMessages(limits) });
    },
  };
}

/** Spend limits with their amounts in credits. */
export function spendLimitMessages(limits: SpendLimits): MessageInitShape<typeof SpendLimitSettingSchema>[] {
  return Object.entries(limits)
    .map(([period, micro]) => ({ period: numberOf(SpendPeriodSchema, period), amount: amountText(micro) }))
    .sort((a, b) => a.period - b.period);
}

function readPeriod(period: number): string {
  return readEnum("period", SpendPeriodSchema, period);
}

function bookingMessages({ kind, reference, amount, at, bookedBefore, balance }: Booking): {
  booking: MessageInitShape<typeof BookingSchema>;
  balance: MessageInitShape<typeof BalanceSchema>;
} {
  return {
    booking: {
      kind: numberOf(LedgerEntryKindSchema, kind),
      reference,
      amount: amountText(amount),
      at: timestampFromDate(at),
      bookedBefore,
    },
    balance: {
      granted: amountText(balance.granted),
      purchased: amountText(balance.purchased),
      held: amountText(balance.held),
    },
  };
}
