import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import type { Command } from "commander";
import {
  type Balance,
  type Booking,
  CreditService,
  DeductResponseSchema,
  GrantResponseSchema,
  type LedgerEntry,
  LedgerEntryKindSchema,
  LedgerEntrySchema,
  PurchaseResponseSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient, wantsJson } from "./clients.ts";
import { messageJson, number, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";

const MAX_PAGE = 1_000;

interface BookingRequest {
  workspace: string;
  amount: string;
  reference: string;
}

interface BookingResponse {
  booking?: Booking | undefined;
  balance?: Balance | undefined;
}

export function addCredits(program: Command): void {
  const credits = program.command("credits").description("grant and book credit, list its movements");
  addBooking(credits.command("grant").description("grant credit"), GrantResponseSchema, (client, request) =>
    client.grant(request),
  );
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

/** Completes a command that books an amount. */
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
      if (wantsJson(command)) printJson(messageJson(schema, response));
      else printBooking(response);
    });
}

function addLedger(credits: Command): void {
  credits
    .command("ledger")
    .description("list the movements of credit, newest first")
    .argument("[workspace]", "name or identifier; an owner can omit it")
    .option("--limit <n>", "most movements to list", "100")
    .option("--charges-only", "omit holds and releases, which do not change the balance")
    .action(async (workspace = "", options: { limit: string; chargesOnly?: boolean }, command: Command) => {
      const limit = /^\d{1,9}$/.test(options.limit) ? Number(options.limit) : 0;
      if (limit < 1) throw new CliError(`--limit must be a whole number from 1, but is "${options.limit}".`);
      const client = await operatorClient(CreditService, command);
      const entries: LedgerEntry[] = [];
      let pageToken = "";
      do {
        const pageSize = Math.min(MAX_PAGE, limit - entries.length);
        const page = await client.listLedger({
          workspace,
          pageSize,
          pageToken,
          chargesOnly: options.chargesOnly ?? false,
        });
        entries.push(...page.entries);
        pageToken = page.nextPageToken;
      } while (pageToken !== "" && entries.length < limit);
      if (wantsJson(command)) printJson({ entries: entries.map((entry) => messageJson(LedgerEntrySchema, entry)) });
      else {
        const rows = entries.map((of) => [
          timeText(of.at),
          wordOf(LedgerEntryKindSchema, of.kind),
          of.reference,
          number(of.granted),
          number(of.purchased),
          number(of.held),
        ]);
        printTable(["AT (UTC)", "KIND", "REFERENCE", "GRANTED", "PURCHASED", "HELD"], rows);
        if (pageToken !== "") console.log(`\nThere are older movements; --limit ${limit * 10} shows more.`);
      }
    });
}

function printBooking({ booking, balance }: BookingResponse): void {
  if (!booking || !balance) return;
  printTable(
    ["KIND", "REFERENCE", "AMOUNT", "BOOKED (UTC)", "GRANTED NOW", "PURCHASED NOW", "HELD NOW"],
    [
      [
        wordOf(LedgerEntryKindSchema, booking.kind),
        booking.reference,
        number(booking.amount),
        timeText(booking.at),
        number(balance.granted),
        number(balance.purchased),
        number(balance.held),
      ],
    ],
  );
  if (booking.bookedBefore) {
    console.log(`\nBooked before, at ${timeText(booking.at)} UTC, under the same reference. Nothing was booked now.`);
  }
}
