import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import { CreditService, type SpendLimitSetting } from "../../gen/chorus/admin/v1/credits_pb.js";
import { UsageService } from "../../gen/chorus/admin/v1/usage_pb.js";
import {
  LimitNameSchema,
  type LimitOverrideSchema,
  type Workspace,
  WorkspaceService,
} from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { type QuotasResponse, SpendPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import { LIMIT_NAMES, MAX_LIMIT } from "../config/tiers.ts";
import { numberOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { enumOf, OWN_WORKSPACE, wantsJson } from "./command.ts";
import { number, printJson, printTable } from "./print.ts";
import { CliError } from "./target.ts";
import { limitsJson, overridesJson, printWorkspace, spendLimitsJson } from "./workspaces.ts";

export function addLimits(program: Command): void {
  const limits = program.command("limits").description("set and show the limits of a workspace");

  const options = LIMIT_NAMES.map((name) => ({
    name,
    option: new Option(`${flagOf(name)} <n>`, `${name.replaceAll("_", " ")}: a number, none or default`),
  }));
  const set = limits
    .command("set")
    .description("override limits of a workspace: a number, none, or default for the limit of the tier")
    .argument("<workspace>", "name or identifier")
    .action(async (workspace: string, given: Record<string, string>, command: Command) => {
      const overrides = options.flatMap(({ name, option }) => {
        const text = given[option.attributeName()];
        return text === undefined ? [] : [overrideOf(name, text)];
      });
      if (overrides.length === 0) throw new CliError(`Name at least one limit: ${LIMIT_NAMES.map(flagOf).join(", ")}.`);
      const client = await operatorClient(WorkspaceService, command);
      printLimits((await client.setLimits({ workspace, overrides })).workspace, command);
    });
  for (const { option } of options) set.addOption(option);

  limits
    .command("show")
    .description("show the limits in force and how much of them is used")
    .argument("[workspace]", OWN_WORKSPACE)
    .action(async (workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(WorkspaceService, command);
      const { workspace: found } = await client.getWorkspace({ workspace });
      const { quotas } = await (await operatorClient(UsageService, command)).getQuotas({ workspace });
      printLimits(found, command, quotas);
    });
}

export function addTiers(program: Command): void {
  program
    .command("tiers")
    .description("assign tiers to workspaces")
    .command("set")
    .description("assign a tier to a workspace, regardless of its purchases")
    .argument("<workspace>", "name or identifier")
    .argument("<tier>", "name of a configured tier, or auto for the tier that results from the purchases")
    .action(async (workspace: string, tier: string, _: unknown, command: Command) => {
      const client = await operatorClient(WorkspaceService, command);
      printWorkspace((await client.setTier({ workspace, tier: tier === "auto" ? "" : tier })).workspace, command);
    });
}

export function addSpendLimits(program: Command): void {
  const limits = program
    .command("spend-limits")
    .description(
      "limit the purchased credit that a workspace spends in a calendar period (UTC; weeks begin on Monday)",
    );

  limits
    .command("set")
    .description("set or replace the limit of a period")
    .argument("[workspace]", OWN_WORKSPACE)
    .requiredOption("--period <period>", "day, week or month")
    .requiredOption("--amount <credits>", "credits, from 0")
    .action(async (workspace = "", options: { period: string; amount: string }, command: Command) => {
      const request = {
        workspace,
        period: enumOf("--period", SpendPeriodSchema, options.period),
        amount: options.amount,
      };
      const client = await operatorClient(CreditService, command);
      printSpendLimits((await client.setSpendLimit(request)).spendLimits, command);
    });

  limits
    .command("clear")
    .description("remove the limit of a period")
    .argument("[workspace]", OWN_WORKSPACE)
    .requiredOption("--period <period>", "day, week or month")
    .action(async (workspace = "", options: { period: string }, command: Command) => {
      const request = { workspace, period: enumOf("--period", SpendPeriodSchema, options.period) };
      const client = await operatorClient(CreditService, command);
      printSpendLimits((await client.clearSpendLimit(request)).spendLimits, command);
    });
}

function flagOf(name: string): string {
  return `--${name.replaceAll("_", "-")}`;
}

function overrideOf(limit: string, text: string): MessageInitShape<typeof LimitOverrideSchema> {
  const name = numberOf(LimitNameSchema, limit);
  if (text === "none") return { name, change: { case: "unlimited", value: {} } };
  if (text === "default") return { name, change: { case: "reset", value: {} } };
  // A longer number does not fit into an int64.
  if (/^-?\d{1,18}$/.test(text)) return { name, change: { case: "value", value: BigInt(text) } };
  throw new CliError(
    `${flagOf(limit)} must be a whole number from 0 to ${MAX_LIMIT}, none or default, but is "${text}".`,
  );
}

/** @param quotas adds what is used */
function printLimits(of: Workspace | undefined, command: Command, quotas?: QuotasResponse): void {
  if (!of) return;
  const limits = limitsJson(of);
  const overrides = overridesJson(of);
  const used = quotas && usedOf(quotas);
  if (wantsJson(command)) {
    const { id, name, tier } = of;
    printJson({ workspace: name, id, tier, limits, overridden_limits: overrides, ...(used ? { used } : {}) });
    return;
  }
  const rows = LIMIT_NAMES.map((name) => {
    const limit = limits[name];
    const setBy = overrides.includes(name) ? "an operator" : `tier ${of.tier}`;
    const value = limit === undefined ? "none" : number(limit);
    return [name, value, ...(used ? [number(used[name] ?? 0)] : []), setBy];
  });
  printTable(["LIMIT", "VALUE", ...(used ? ["USED"] : []), "SET BY"], rows);
}

function usedOf({ windows, concurrentRequests }: QuotasResponse): Record<string, number> {
  const units = (["minute", "day", "month"] as const).map((unit) => {
    const window = windows?.[unit];
    return {
      [`requests_per_${unit}`]: Number(window?.requests?.used ?? 0),
      [`input_tokens_per_${unit}`]: Number(window?.inputTokens?.used ?? 0),
      [`output_tokens_per_${unit}`]: Number(window?.outputTokens?.used ?? 0),
    };
  });
  return Object.assign({ concurrent_requests: Number(concurrentRequests?.used ?? 0) }, ...units);
}

function printSpendLimits(settings: readonly SpendLimitSetting[], command: Command): void {
  const limits = spendLimitsJson(settings);
  const rows = ["day", "week", "month"].map((period) => {
    const amount = limits[period];
    return [period, amount === undefined ? "none" : number(amount)];
  });
  if (wantsJson(command)) printJson({ spend_limits: limits });
  else printTable(["PERIOD", "CREDITS"], rows);
}
