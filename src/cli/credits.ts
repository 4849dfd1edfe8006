import type { Command } from "commander";
import {
  type Balance,
  type Booking,
  CreditService,
  DeductResponseSchema,
  GrantResponseSchema,
  type LedgerEntry,
  LedgerEntrySchema,
  PurchaseResponseSchema,
} from "../../gen/chorus/admin/v1/credits_pb.js";
import { CliError, json, operatorClient } from "./clients.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";

const MAX_PAGE = 1_000;

export function addCredits(program: Command): void {
  const credits = program.command("credits").description("book credit and list its movements");

  credits
    .command("grant")
    .description("grant credit")
    .argument("<workspace>", "name or identifier")
    .argument("<amount>", "credits, with up to six decimals")
    .requiredOption("--reference <reference>", "your own; a reference is booked once")
    .action(async (workspace: string, amount: string, { reference }: { reference: string }, command: Command) => {
      const client = await operatorClient(CreditService, command);
      const response = await client.grant({ workspace, amount, reference });
      if (json(command)) printJson(messageJson(GrantResponseSchema, response));
      else printBooking(response);
    });

  credits
    .command("deduct")
    .description("take granted credit back that is neither spent nor held")
    .argument("<workspace>", "name or identifier")
    .argument("<amount>", "credits, with up to six decimals")
    .requiredOption("--reference <reference>", "your own; a reference is booked once")
    .action(async (workspace: string, amount: string, { reference }: { reference: string }, command: Command) => {
      const client = await operatorClient(CreditService, command);
      const response = await client.deduct({ workspace, amount, reference });
      if (json(command)) printJson(messageJson(DeductResponseSchema, response));
      else printBooking(response);
    });

  credits
    .command("purchase")
    .description("book purchased credit; limits rise at once when it leads into a higher tier")
    .argument("<workspace>", "name or identifier")
    .argument("<amount>", "credits, with up to six decimals")
    .requiredOption("--reference <reference>", "your own, such as the payment's; a reference is booked once")
    .action(async (workspace: string, amount: string, { reference }: { reference: string }, command: Command) => {
      const client = await operatorClient(CreditService, command);
      const response = await client.purchase({ workspace, amount, reference });
      if (json(command)) printJson(messageJson(PurchaseResponseSchema, response));
      else printBooking(response);
    });

  credits
    .command("ledger")
    .description("list the movements of credit, newest first")
    .argument("[workspace]", "name or identifier; an owner may leave it out", "")
    .option("--limit <n>", "most movements to list", "100")
    .option("--charges-only", "leave out holds and releases, which move nothing for good", false)
    .action(async (workspace: string, options: { limit: string; chargesOnly: boolean }, command: Command) => {
      const limit = /^\d{1,9}$/.test(options.limit) ? Number(options.limit) : 0;
      if (limit < 1) throw new CliError(`--limit must be a whole number from 1, but is "${options.limit}".`);
      const client = await operatorClient(CreditService, command);
      const entries: LedgerEntry[] = [];
      let pageToken = "";
      do {
        const pageSize = Math.min(MAX_PAGE, limit - entries.length);
        const page = await client.listLedger({ workspace, pageSize, pageToken, chargesOnly: options.chargesOnly });
        entries.push(...page.entries);
        pageToken = page.nextPageToken;
      } while (pageToken !== "" && entries.length < limit);
      if (json(command)) printJson({ entries: entries.map((entry) => messageJson(LedgerEntrySchema, entry)) });
      else {
        const rows = entries.map((of) => [timeText(of.at), of.kind, of.reference, of.granted, of.purchased, of.held]);
        printTable(["AT (UTC)", "KIND", "REFERENCE", "GRANTED", "PURCHASED", "HELD"], rows);
        if (pageToken !== "") console.log(`\nThere are older ones; --limit ${limit * 10} shows more.`);
      }
    });
}

function printBooking({ booking, balance }: { booking?: Booking | undefined; balance?: Balance | undefined }): void {
  if (!booking || !balance) return;
  printTable(
    ["KIND", "REFERENCE", "AMOUNT", "BOOKED (UTC)", "GRANTED NOW", "PURCHASED NOW", "HELD NOW"],
    [
      [
        booking.kind,
        booking.reference,
        booking.amount,
        timeText(booking.at),
        balance.granted,
        balance.purchased,
        balance.held,
      ],
    ],
  );
}
