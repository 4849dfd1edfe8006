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
  ListLedgerResponseSchema,
  PurchaseResponseSchema,
  SetSpendLimitResponseSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { amountText } from "../accounts/amount.ts";
import type { Booking, Credit } from "../accounts/credit.ts";
import type { SpendLimits } from "../accounts/workspaces.ts";
import type { Admin } from "./admin.ts";
import { readTimestamp } from "./timestamp.ts";

export type CreditAdmin = Admin<typeof CreditService>;

/** Bookings of operators; ledger and spend limits of owners. */
export function createCreditAdmin(credit: Credit): CreditAdmin {
  return {
    async grant({ workspace, amount, reference }, actor) {
      const booked = await credit.book(actor, { workspace, kind: "grant", amount, reference });
      return create(GrantResponseSchema, bookingMessages(booked));
    },
    async deduct({ workspace, amount, reference }, actor) {
      const booked = await credit.book(actor, { workspace, kind: "adjustment", amount, reference });
      return create(DeductResponseSchema, bookingMessages(booked));
    },
    async purchase({ workspace, amount, reference }, actor) {
      const booked = await credit.book(actor, { workspace, kind: "purchase", amount, reference });
      return create(PurchaseResponseSchema, bookingMessages(booked));
    },
    async listLedger({ from, to, ...request }, actor) {
      const period = { from: readTimestamp("from", from), to: readTimestamp("to", to) };
      const page = await credit.ledger(actor, { ...request, ...period });
      return create(ListLedgerResponseSchema, {
        entries: page.entries.map(({ id, at, kind, reference, granted, purchased, held }) => ({
          id: `${id}`,
          at: timestampFromDate(at),
          kind,
          reference,
          granted: amountText(granted),
          purchased: amountText(purchased),
          held: amountText(held),
        })),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
    async checkBooks({ workspace }, actor) {
      return create(CheckBooksResponseSchema, { differences: await credit.check(actor, workspace) });
    },
    async setSpendLimit({ workspace, period, amount }, actor) {
      const limits = await credit.setSpendLimit(actor, { workspace, period, amount });
      return create(SetSpendLimitResponseSchema, { spendLimits: spendLimitTexts(limits) });
    },
    async clearSpendLimit({ workspace, period }, actor) {
      const limits = await credit.setSpendLimit(actor, { workspace, period, amount: undefined });
      return create(ClearSpendLimitResponseSchema, { spendLimits: spendLimitTexts(limits) });
    },
  };
}

/** Spend limits in credits, by period. */
export function spendLimitTexts(limits: SpendLimits): Record<string, string> {
  return Object.fromEntries(Object.entries(limits).map(([period, micro]) => [period, amountText(micro)]));
}

function bookingMessages({ kind, reference, amount, at, balance }: Booking): {
  booking: MessageInitShape<typeof BookingSchema>;
  balance: MessageInitShape<typeof BalanceSchema>;
} {
  return {
    booking: { kind, reference, amount: amountText(amount), at: timestampFromDate(at) },
    balance: {
      granted: amountText(balance.granted),
      purchased: amountText(balance.purchased),
      held: amountText(balance.held),
    },
  };
}
