import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import {
  type Balance,
  type Booking,
  CreditService,
  DeductResponseSchema,
  GrantResponseSchema,
  LedgerEntryKindSchema,
  LedgerEntrySchema,
  LedgerHourSchema,
  PurchaseResponseSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { enumOf, limitOf, OWN_WORKSPACE, readPages, repeated, show, wantsJson } from "./command.ts";
import { messageJson, number, printJson, printTable, timeText } from "./print.ts";

type BookingRequest = Record<"workspace" | "amount" | "reference", string>;

interface BookingResponse {
  booking?: Booking | undefined;
  balance?: Balance | undefined;
}

export function addCredits(program: Command): void {
  const credits = program.command("credits").description("grant and book credit, list its movements");
  const grant = credits.command("grant").description("grant credit");
  addBooking(grant, GrantResponseSchema, (client, request) => client.grant(request));
  addBooking(
    credits.command("deduct").description("take back granted credit that is neither spent nor held"),
    DeductResponseSchema,
    (client, request) => client.deduct(request),
  );
  addBooking(
    credits.command("purchase").description("book purchased credit; may raise the tier, and with it the limits"),
    PurchaseResponseSchema,
    (client, request) => client.purchase(request),
  );
  addLedger(credits);
}

function addBooking<D extends DescMessage>(
  command: Command,
  schema: D,
  book: (client: Client<typeof CreditService>, request: BookingRequest) => Promise<MessageShape<D> & BookingResponse>,
): void {
  command
    .argument("<workspace>", "name or identifier")
    .argument("<amount>", "credits, with up to six decimals")
    .requiredOption("--reference <reference>", "your reference, such as a payment's; each is booked only once")
    .action(async (workspace: string, amount: string, { reference }: { reference: string }, command: Command) => {
      const client = await operatorClient(CreditService, command);
      const response = await book(client, { workspace, amount, reference });
      show(command, schema, response, () => printBooking(response));
    });
}

interface LedgerOptions {
  limit: string;
  chargesOnly?: boolean;
  kind?: string[];
  byHour?: boolean;
}

function addLedger(credits: Command): void {
  credits
    .command("ledger")
    .description("list the movements of credit, newest first")
    .argument("[workspace]", OWN_WORKSPACE)
    .option("--limit <n>", "most movements to list", "100")
    .option("--charges-only", "omit holds and releases, which only earlier versions wrote")
    .option("--kind <kind>", "list this kind only: grant, purchase, adjustment or settlement; repeatable", repeated)
    .addOption(new Option("--by-hour", "sum the settlements of each hour").conflicts(["kind", "chargesOnly"]))
    .action(async (workspace = "", options: LedgerOptions, command: Command) => {
      if (options.byHour) return listHours(workspace, limitOf(options.limit), command);
      const limit = limitOf(options.limit);
      const kinds = (options.kind ?? []).map((kind) => enumOf("--kind", LedgerEntryKindSchema, kind));
      const client = await operatorClient(CreditService, command);
      const of = { workspace, chargesOnly: options.chargesOnly ?? false, kinds };
      const read = (page: object) => client.listLedger({ ...of, ...page });
      const { entries, hasMore } = await readPages("entries", read, limit);
      if (wantsJson(command)) {
        return printJson({
          entries: entries.map((entry) => messageJson(LedgerEntrySchema, entry)),
          has_more: hasMore,
        });
      }
      const rows = entries.map(({ at, kind, reference, granted, purchased, held }) => [
        ...[timeText(at), wordOf(LedgerEntryKindSchema, kind), reference],
        ...[number(granted), number(purchased), number(held)],
      ]);
      printTable(["AT (UTC)", "KIND", "REFERENCE", "GRANTED", "PURCHASED", "HELD"], rows);
      if (hasMore) console.log(`\nThere are older movements; --limit ${limit * 10} shows more.`);
    });
}

async function listHours(workspace: string, limit: number, command: Command): Promise<void> {
  const client = await operatorClient(CreditService, command);
  const { entries, hasMore } = await readPages(
    "hours",
    (page) => client.listLedgerHours({ workspace, ...page }),
    limit,
  );
  if (wantsJson(command)) {
    const hours = entries.map((hour) => messageJson(LedgerHourSchema, hour));
    return printJson({ hours, has_more: hasMore });
  }
  const rows = entries.map(({ startTime, settlements, granted, purchased }) => [
    timeText(startTime),
    ...[number(settlements), number(granted), number(purchased)],
  ]);
  printTable(["HOUR (UTC)", "SETTLEMENTS", "GRANTED", "PURCHASED"], rows);
  if (hasMore) console.log(`\nThere are older hours; --limit ${limit * 10} shows more.`);
}

function printBooking({ booking, balance }: BookingResponse): void {
  if (!booking || !balance) return;
  const { kind, reference, amount, at } = booking;
  const { granted, purchased, held } = balance;
  const header = ["KIND", "REFERENCE", "AMOUNT", "BOOKED (UTC)", "GRANTED NOW", "PURCHASED NOW", "HELD NOW"];
  const booked = [wordOf(LedgerEntryKindSchema, kind), reference, number(amount), timeText(at)];
  printTable(header, [[...booked, number(granted), number(purchased), number(held)]]);
  if (booking.bookedBefore) {
    console.log(`\nBooked before, at ${timeText(booking.at)} UTC, under the same reference. Nothing was booked now.`);
  }
}
