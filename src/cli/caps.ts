import type { Command } from "commander";
import { type Cap, CapSchema, CapService, SetCapResponseSchema } from "../../gen/chorus/admin/v1/caps_pb.js";
import { CapActionSchema, CapFigureSchema, CapPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { enumOf, OWN_WORKSPACE, readPages, show, wantsJson } from "./command.ts";
import { messageJson, number, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";
import { parseTime } from "./time.ts";

interface SetOptions {
  subject: string;
  figure: string;
  period?: string;
  amount: string;
  until?: string;
  then?: string;
}

/** `chorus caps`: sets, lists and removes the caps of keys, end users and tags. */
export function addCaps(program: Command): void {
  const caps = program.command("caps").description("cap what a key, an end user or a tag may use");
  addSet(caps);

  caps
    .command("list")
    .description("list the caps of a workspace")
    .argument("[workspace]", OWN_WORKSPACE)
    .action(async (workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(CapService, command);
      const { entries } = await readPages("caps", (page) => client.listCaps({ workspace, ...page }));
      if (wantsJson(command)) printJson({ caps: entries.map((cap) => messageJson(CapSchema, cap)) });
      else printCaps(entries);
    });

  caps
    .command("clear")
    .description("remove a cap")
    .usage("[options] [workspace] <id>")
    .argument("[workspace]", OWN_WORKSPACE)
    .argument("[id]", "identifier of the cap, such as cap_…")
    .action(async (first = "", second: string | undefined, _: unknown, command: Command) => {
      // Without a workspace, the identifier comes first.
      const [workspace, id] = second === undefined ? ["", first] : [first, second];
      if (id === "") throw new CliError("Name the cap by its identifier, such as cap_…; caps list shows it.");
      await (await operatorClient(CapService, command)).clearCap({ workspace, id });
      if (wantsJson(command)) printJson({});
      else console.log("The cap is removed.");
    });
}

function addSet(caps: Command): void {
  caps
    .command("set")
    .description("set or replace a cap")
    .argument("[workspace]", OWN_WORKSPACE)
    .requiredOption("--subject <subject>", "key:ID, user:ID or tag:NAME=VALUE; with * as ID or VALUE, each of them")
    .requiredOption("--figure <figure>", "credits, requests, input_tokens, output_tokens or concurrent_requests")
    .option("--period <period>", "minute, day, week, month or total; not for concurrent_requests")
    .requiredOption("--amount <n>", "the most that may be used")
    .option("--until <time>", "raises or lowers for a time: until a time, or for a duration such as 12h")
    .option("--then <action>", "when it is used up: refuse, or low to answer with the effort low", "refuse")
    .addHelpText(
      "after",
      `
Examples:
  chorus caps set default --subject 'user:*' --figure credits --period day --amount 5
  chorus caps set default --subject user:u-4711 --figure credits --period day --amount 50 --until 24h
  chorus caps set default --subject tag:team=search --figure requests --period minute --amount 100`,
    )
    .action(async (workspace = "", options: SetOptions, command: Command) => {
      const { subject, period, amount, until } = options;
      const cap = {
        subject,
        figure: enumOf("--figure", CapFigureSchema, options.figure),
        ...(period === undefined ? {} : { period: enumOf("--period", CapPeriodSchema, period) }),
        amount,
        action: enumOf("--then", CapActionSchema, options.then ?? "refuse"),
        ...(until === undefined ? {} : { endsAt: parseTime("--until", until, 1) }),
      };
      const response = await (await operatorClient(CapService, command)).setCap({ workspace, cap });
      show(command, SetCapResponseSchema, response, ({ cap }) => printCaps(cap ? [cap] : []));
    });
}

function printCaps(caps: readonly Cap[]): void {
  const rows = caps.map(({ id, subject, figure, period, amount, action, endsAt }) => [
    id,
    subject,
    wordOf(CapFigureSchema, figure),
    wordOf(CapPeriodSchema, period) || "-",
    number(amount),
    wordOf(CapActionSchema, action),
    timeText(endsAt),
  ]);
  printTable(["ID", "SUBJECT", "FIGURE", "PERIOD", "AMOUNT", "THEN", "UNTIL (UTC)"], rows);
}
