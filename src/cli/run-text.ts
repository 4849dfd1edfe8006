import type { Command } from "commander";
import { ActivityService, DeleteRunTextResponseSchema } from "../../gen/chorus/admin/v1/activity_pb.js";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { RoleSchema, type RunText, type RunTextMessage, RunTextSchema } from "../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { OWN_WORKSPACE, show, wantsJson } from "./command.ts";
import { grouped, printJson, safe, timeText } from "./print.ts";
import { CliError } from "./target.ts";

/** `chorus runs keep-text` and `delete-text`. */
export function addRunText(runs: Command): void {
  runs
    .command("keep-text")
    .description("keep the text of requests from now on, as an owner; off keeps none any more and deletes all")
    .argument("<days>", "1 to 30 days, or off")
    .argument("[workspace]", OWN_WORKSPACE)
    .action(async (days: string, workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(WorkspaceService, command);
      const { workspace: of } = await client.setRunText({ workspace, days: daysOf(days) });
      const { name = "", runTextDays = 0 } = of ?? {};
      if (wantsJson(command)) printJson({ workspace: name, run_text_days: runTextDays });
      else if (runTextDays > 0) console.log(`${name} keeps the text of requests for ${daysText(runTextDays)}.`);
      else console.log(`${name} keeps no text of requests. What was kept is deleted.`);
    });
  runs
    .command("delete-text")
    .description("delete the kept text of one request, or of all")
    .argument("<id>", "identifier of the request, such as gen_…, or all")
    .argument("[workspace]", OWN_WORKSPACE)
    .action(async (id: string, workspace = "", _: unknown, command: Command) => {
      const client = await operatorClient(ActivityService, command);
      const texts = id === "all" ? ({ case: "all", value: true } as const) : ({ case: "id", value: id } as const);
      const response = await client.deleteRunText({ workspace, texts });
      show(command, DeleteRunTextResponseSchema, response, ({ deleted }) => {
        console.log(`Deleted the text of ${grouped(deleted)} ${deleted === 1n ? "request" : "requests"}.`);
      });
    });
}

function daysOf(text: string): number {
  if (text === "off") return 0;
  if (/^\d{1,3}$/.test(text) && Number(text) > 0) return Number(text);
  throw new CliError(`The days must be a whole number from 1 to 30, or off, but are "${text}".`);
}

/** A number of days, such as `1 day`. */
export function daysText(days: number): string {
  return days === 1 ? "1 day" : `${days} days`;
}

/** Shows the text of a request. The audit log records it. */
export async function showText(id: string, workspace: string, command: Command): Promise<void> {
  const client = await operatorClient(ActivityService, command);
  show(command, RunTextSchema, await client.getRunText({ workspace, id }), printText);
}

function printText({ messages, files, drafts, answer, calls, isCut, keptUntil }: RunText): void {
  for (const message of messages) printPart(titleOf(message), message.text);
  for (const { name, mediaType, size } of files)
    printPart("file", `${name || "without a name"}, ${mediaType}, ${grouped(size)} bytes; its content is not kept`);
  for (const { step, text } of drafts) printPart(`draft of step ${step}`, text);
  printPart("answer", answer);
  for (const call of calls) printPart(titleOf(call), call.text);
  if (isCut) console.log("There was more text. Only a part of it is kept.");
  console.log(`Kept until ${timeText(keptUntil)} UTC. The audit log says that you have read it.`);
}

function titleOf({ role, tool }: RunTextMessage): string {
  const word = wordOf(RoleSchema, role);
  if (tool === "") return word;
  return word === "tool" ? `result of ${tool}` : `call of ${tool}`;
}

function printPart(title: string, text: string): void {
  console.log(`--- ${safe(title).replace(/[\n\t]/g, " ")} ---\n${safe(text)}\n`);
}
