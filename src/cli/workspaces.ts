import { create, type JsonObject } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import type { SpendLimitSetting } from "../../gen/chorus/admin/v1/credits_pb.js";
import {
  OperationsService,
  WorkspaceConditionSchema,
  WorkspaceOrder,
  WorkspaceOrderSchema,
  type WorkspaceState,
  WorkspaceStateSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import {
  LimitNameSchema,
  type Workspace,
  type WorkspaceKind,
  WorkspaceKindSchema,
  WorkspaceSchema,
  WorkspaceService,
} from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { SpendPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf, wordOf, words } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { limitOf, OWN_WORKSPACE, readPages, wantsJson } from "./command.ts";
import { grouped, messageJson, number, printJson, printTable, timeText } from "./print.ts";
import { daysText } from "./run-text.ts";
import { CliError } from "./target.ts";

export function addWorkspaces(program: Command): void {
  const workspaces = program.command("workspaces").description("create, list and show workspaces");

  workspaces
    .command("create")
    .description("create a workspace with an empty balance")
    .argument("<name>", "unique name: letters, digits, '.', '_' and '-'")
    .option("--kind <kind>", "personal or organization", "personal")
    .action(async (name: string, options: { kind: string }, command: Command) => {
      const kind: WorkspaceKind = numberOf(WorkspaceKindSchema, options.kind);
      if (!kind) throw new CliError(`--kind must be personal or organization, but is "${options.kind}".`);
      const client = await operatorClient(WorkspaceService, command);
      printWorkspace((await client.createWorkspace({ name, kind })).workspace, command);
    });

  workspaces
    .command("list")
    .description("list workspaces, with their use of the last 24 hours and what stops their requests")
    .option("--search <text>", "only those whose names have this text")
    .addOption(
      new Option("--order <order>", "all but name begin with the latest or the largest")
        .choices([...words(WorkspaceOrderSchema).values()])
        .default("name"),
    )
    .option("--limit <n>", "number of workspaces (default: all)")
    .action(listWorkspaces);

  workspaces
    .command("show")
    .description("show a workspace, its balance and limits")
    .argument("[workspace]", OWN_WORKSPACE)
    .action(async (workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(WorkspaceService, command);
      printWorkspace((await client.getWorkspace({ workspace })).workspace, command);
    });
}

async function listWorkspaces(options: { search?: string; order: string; limit?: string }, command: Command) {
  const order: WorkspaceOrder = numberOf(WorkspaceOrderSchema, options.order);
  const selected = { name: options.search ?? "", order, descending: order !== WorkspaceOrder.NAME };
  const most = options.limit === undefined ? undefined : limitOf(options.limit);
  const client = await operatorClient(OperationsService, command);
  const read = (page: object) => client.listWorkspaceStates({ ...page, ...selected });
  const { entries, hasMore } = await readPages("workspaces", read, most);
  if (wantsJson(command)) return printJson({ workspaces: entries.map(stateJson), has_more: hasMore });
  const header = ["NAME", "ID", "KIND", "TIER", "GRANTED", "PURCHASED", "HELD", "REQUESTS", "CREDITS", "STATE"];
  printTable(header, entries.map(stateRow));
}

function stateRow(state: WorkspaceState) {
  const of = state.workspace ?? create(WorkspaceSchema);
  const reached = state.reachedLimits.map((name) => wordOf(LimitNameSchema, name)).join(", ");
  return [
    of.name,
    of.id,
    kindText(of),
    of.tier,
    number(of.granted),
    number(of.purchased),
    number(of.held),
    number(state.requests),
    number(state.credits),
    wordOf(WorkspaceConditionSchema, state.condition).replaceAll("_", " ") + (reached && `: ${reached}`),
  ];
}

function stateJson(state: WorkspaceState): JsonObject {
  const { workspace, ...rest } = messageJson(WorkspaceStateSchema, state);
  return { ...(state.workspace ? workspaceJson(state.workspace) : {}), ...rest };
}

export function printWorkspace(of: Workspace | undefined, command: Command): void {
  if (!of) return;
  if (wantsJson(command)) {
    printJson(workspaceJson(of));
    return;
  }
  const limits = limitsJson(of);
  const overrides = overridesJson(of);
  const facts = [
    ["name", of.name],
    ["id", of.id],
    ["kind", kindText(of)],
    ["created (UTC)", timeText(of.createdAt)],
    ["tier", of.tierOverridden ? `${of.tier} (by an operator)` : of.tier],
    ["granted", grouped(of.granted)],
    ["purchased", grouped(of.purchased)],
    ["held", grouped(of.held)],
    ["purchased in total", grouped(of.purchasedTotal)],
    ["running requests", grouped(of.running)],
    ["text of requests", of.runTextDays > 0 ? `kept for ${daysText(of.runTextDays)}` : "not kept"],
    ...Object.entries(spendLimitsJson(of.spendLimits)).map(([period, amount]) => [
      `spend limit per ${period}`,
      grouped(amount),
    ]),
    ...Object.entries(limits).map(([name, limit]) => [
      name,
      overrides.includes(name) ? `${grouped(limit)} (by an operator)` : grouped(limit),
    ]),
    ...overrides.filter((name) => !(name in limits)).map((name) => [name, "none (by an operator)"]),
  ];
  printTable(["WORKSPACE", ""], facts);
}

export function limitsJson({ limits }: Workspace): Record<string, number> {
  return Object.fromEntries(limits.map(({ name, value }) => [wordOf(LimitNameSchema, name), Number(value)]));
}

export function overridesJson({ overriddenLimits }: Workspace): string[] {
  return overriddenLimits.map((name) => wordOf(LimitNameSchema, name));
}

export function spendLimitsJson(limits: readonly SpendLimitSetting[]): Record<string, string> {
  return Object.fromEntries(limits.map(({ period, amount }) => [wordOf(SpendPeriodSchema, period), amount]));
}

/** A workspace as JSON, with the words and numbers of the contract. */
function workspaceJson(of: Workspace): JsonObject {
  return {
    ...messageJson(WorkspaceSchema, of),
    limits: limitsJson(of),
    spend_limits: spendLimitsJson(of.spendLimits),
  };
}

function kindText({ kind }: Workspace): string {
  return wordOf(WorkspaceKindSchema, kind);
}
