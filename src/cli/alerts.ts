import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  AlertDeliverySchema,
  AlertDeliveryStateSchema,
  AlertFormatSchema,
  AlertService,
  type Alerts,
  AlertsSchema,
  SetAlertsResponseSchema,
} from "../../gen/chorus/admin/v1/alerts_pb.js";
import { numberOf, wordOf, words } from "../contract/json-names.ts";
import { isMailTarget } from "../contract/mail-address.ts";
import { operatorClient } from "./clients.ts";
import { limitOf, readPages, repeated, show, wantsJson } from "./command.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";

const WORKSPACE =
  "name or identifier; an owner can omit it; for an operator without it, the alerts over all workspaces";

/** Removes a threshold. */
const NONE = "none";

interface Thresholds {
  url?: string;
  format?: string;
  creditBelow?: string;
  spendShare?: string;
  failureShare?: string;
  capShare?: string;
  cap?: string[];
  newSecret?: boolean;
}

/** `chorus alerts`: sets, shows, tests and removes alerts, and lists their deliveries. */
export function addAlerts(program: Command): void {
  const alerts = program
    .command("alerts")
    .description("send alerts to a webhook or by e-mail when figures cross thresholds");
  addSet(alerts);

  alerts
    .command("show")
    .description("show where alerts are sent, and the thresholds")
    .argument("[workspace]", WORKSPACE)
    .action(async (workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(AlertService, command);
      const { alerts: found } = await client.getAlerts({ workspace });
      if (found) show(command, AlertsSchema, found, print);
      else if (wantsJson(command)) printJson({});
      else console.log("No alerts are set.");
    });

  alerts
    .command("clear")
    .description("remove the address and the thresholds")
    .argument("[workspace]", WORKSPACE)
    .action(async (workspace = "", _: unknown, command: Command) => {
      await (await operatorClient(AlertService, command)).clearAlerts({ workspace });
      if (wantsJson(command)) printJson({});
      else console.log("The alerts are removed.");
    });

  alerts
    .command("test")
    .description("send a test event; by e-mail once a minute at most")
    .argument("[workspace]", WORKSPACE)
    .action(async (workspace = "", _: unknown, command: Command) => {
      const { deliveryId } = await (await operatorClient(AlertService, command)).testAlerts({ workspace });
      if (wantsJson(command)) printJson({ delivery_id: deliveryId });
      else console.log(`Sending ${deliveryId}. See: chorus alerts deliveries`);
    });

  alerts
    .command("deliveries")
    .description("list the last deliveries, newest first")
    .argument("[workspace]", WORKSPACE)
    .option("--limit <n>", "most deliveries to list", "20")
    .action(async (workspace = "", options: { limit: string }, command: Command) => {
      const limit = limitOf(options.limit);
      const client = await operatorClient(AlertService, command);
      const read = (page: object) => client.listAlertDeliveries({ workspace, ...page });
      const { entries: deliveries, hasMore } = await readPages("deliveries", read, limit);
      if (wantsJson(command)) {
        const list = deliveries.map((one) => messageJson(AlertDeliverySchema, one));
        return printJson({ deliveries: list, has_more: hasMore });
      }
      const states = words(AlertDeliveryStateSchema);
      const rows = deliveries.map((one) => [
        timeText(one.createdAt),
        one.id,
        states.get(one.state) ?? "-",
        `${one.attempts}`,
        one.error || (one.responseStatus ? `${one.responseStatus}` : "-"),
        one.event,
      ]);
      printTable(["CREATED (UTC)", "ID", "STATE", "ATTEMPTS", "RESULT", "EVENT"], rows);
    });
}

function addSet(alerts: Command): void {
  alerts
    .command("set")
    .description("set the address and the thresholds; what is not named stays as it is")
    .argument("[workspace]", WORKSPACE)
    .option("--url <url>", "address of the webhook, or mailto:ann@example.com,bob@example.com; required the first time")
    .option(
      "--format <format>",
      "of webhooks: event, for programs, or slack, for a channel of Slack, Mattermost or Discord",
    )
    .option("--credit-below <credits>", "alert when less credit is left; none: no alert")
    .option("--spend-share <share>", "alert when this share of a spend limit is used, such as 0.8; none: no alert")
    .option("--failure-share <share>", "alert when this share of the requests of ten minutes fails; none: no alert")
    .option("--cap-share <share>", "alert when this share of a cap is used, once a subject and period; none: no alert")
    .option("--cap <limit>", "only of these caps, such as user:credits_per_day; can be repeated; all: of all", repeated)
    .option("--new-secret", "make a new secret for the signatures")
    .action(async (workspace = "", given: Thresholds, command: Command) => {
      const client = await operatorClient(AlertService, command);
      const { alerts: present } = await client.getAlerts({ workspace });
      const set = merged(present, given);
      const response = await client.setAlerts({ workspace, newSecret: given.newSecret ?? false, alerts: set });
      show(command, SetAlertsResponseSchema, response, ({ alerts: set, secret }) => {
        if (set) print(set);
        if (secret) console.log(`\nSecret of the signatures, shown only once: ${secret}`);
      });
    });
}

/** The alerts in force with the changes that options name. @throws CliError without an address, or for a wrong share */
function merged(present: Alerts | undefined, given: Thresholds): MessageInitShape<typeof AlertsSchema> {
  const webhookUrl = given.url ?? present?.webhookUrl ?? "";
  if (webhookUrl === "")
    throw new CliError("No alerts are set yet, so --url must name the webhook or the e-mail addresses.");
  const { creditBelow = present?.creditBelow ?? "" } = given;
  const limits = given.cap?.includes("all") ? [] : (given.cap ?? present?.capLimits ?? []);
  return {
    webhookUrl,
    format: given.format === undefined ? (present?.format ?? 0) : formatOf(given.format),
    creditBelow: creditBelow === NONE ? "" : creditBelow,
    ...share("spendShare", "--spend-share", given.spendShare, present),
    ...share("failureShare", "--failure-share", given.failureShare, present),
    ...share("capShare", "--cap-share", given.capShare, present),
    // Limits without a share are refused, which tells about a missing option but not about a removed share.
    capLimits: given.capShare === NONE && given.cap === undefined ? [] : limits,
  };
}

/** @throws CliError for an unknown word */
function formatOf(word: string): number {
  const format = numberOf(AlertFormatSchema, word);
  if (format === 0) throw new CliError(`--format must be event or slack, but is "${word}".`);
  return format;
}

type Share = "spendShare" | "failureShare" | "capShare";

/** A threshold as a member of the alerts: the given one, else the present one. */
function share(member: Share, flag: string, text: string | undefined, present: Alerts | undefined) {
  if (text === NONE) return {};
  if (text === undefined) return present?.[member] === undefined ? {} : { [member]: present[member] };
  if (!/^\d*\.?\d+$/.test(text))
    throw new CliError(`${flag} must be a number up to 1, such as 0.8, or none, but is "${text}".`);
  return { [member]: Number(text) };
}

function print({ webhookUrl, format, creditBelow, spendShare, failureShare, capShare, capLimits }: Alerts): void {
  const rows = [
    ["address", webhookUrl],
    ["format", isMailTarget(webhookUrl) ? "e-mail" : wordOf(AlertFormatSchema, format)],
    ["credit below", creditBelow || "none"],
    ["share of a spend limit", `${spendShare ?? "none"}`],
    ["share of failed requests", `${failureShare ?? "none"}`],
    ["share of a cap", capLimits.length > 0 ? `${capShare} of ${capLimits.join(", ")}` : `${capShare ?? "none"}`],
  ];
  printTable(["ALERT", "VALUE"], rows);
}
