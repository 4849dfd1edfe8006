import type { Command } from "commander";
import {
  ActivityService,
  CallOutcomeSchema,
  type Generation,
  GenerationSchema,
  type ListRunningResponse,
  ListRunningResponseSchema,
  OutcomeSchema,
  type Run,
  type RunCall,
  RunSchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import {
  EffortSchema,
  StepKindSchema,
  StepOutcomeSchema,
  StepRoleSchema,
  type TraceStep,
} from "../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { limitOf, OWN_WORKSPACE, readPages, show, wantsJson } from "./command.ts";
import { grouped, messageJson, number, printJson, printTable, safe, timeText } from "./print.ts";
import { addRunText, showText } from "./run-text.ts";

/** `chorus runs`: how requests were answered. */
export function addRuns(program: Command): void {
  const runs = program.command("runs").description("show how requests were answered");
  runs
    .command("list")
    .description("list the requests of a workspace, newest first")
    .argument("[workspace]", OWN_WORKSPACE)
    .option("--limit <n>", "most requests to list", "20")
    .option("--running", "list the requests that run now")
    .action(async (workspace = "", options: { limit: string; running?: true }, command: Command) => {
      const limit = limitOf(options.limit);
      const client = await operatorClient(ActivityService, command);
      if (options.running) {
        return show(command, ListRunningResponseSchema, await client.listRunning({ workspace }), printRunning);
      }
      const read = (page: object) => client.listGenerations({ workspace, ...page });
      const { entries, hasMore } = await readPages("generations", read, limit);
      if (wantsJson(command)) {
        const generations = entries.map((of) => messageJson(GenerationSchema, of));
        return printJson({ generations, has_more: hasMore });
      }
      const header = ["AT (UTC)", "REQUEST", "LEVEL", "END", "IN", "OUT", "CREDITS", "TIME"];
      printTable(header, entries.map(requestRow));
      if (hasMore) console.log(`\nThere are older requests; --limit ${limit * 10} shows more.`);
    });
  runs
    .command("show")
    .description("show the steps, calls of models, votes and costs of one request; an operator sees models and vendors")
    .argument("<id>", "identifier of the generation or the request: gen_… or req_…")
    .argument("[workspace]", OWN_WORKSPACE)
    .option("--text", "show its prompt, drafts and answer instead, where they are kept; needs an owner token")
    .action(async (id: string, workspace = "", options: { text?: true }, command: Command) => {
      if (options.text) return showText(id, workspace, command);
      const client = await operatorClient(ActivityService, command);
      show(command, RunSchema, await client.getRun({ workspace, id }), printRun);
    });
  addRunText(runs);
}

function requestRow(of: Generation) {
  return [
    timeText(of.at),
    of.id,
    wordOf(EffortSchema, of.level),
    endOf(of),
    number(of.inputTokens),
    number(of.outputTokens),
    number(of.credits),
    number(of.latencyMs, " ms"),
  ];
}

function printRunning({ generations }: ListRunningResponse): void {
  if (generations.length === 0) {
    console.log("No request runs.");
    return;
  }
  const row = (of: Generation) => [
    timeText(of.at),
    of.id,
    wordOf(EffortSchema, of.level),
    number(of.inputTokens),
    number(of.latencyMs, " ms"),
    of.keyName || of.keyId,
  ];
  printTable(["AT (UTC)", "REQUEST", "LEVEL", "IN", "TIME", "KEY"], generations.map(row));
}

function endOf({ outcome, failureCode }: Generation): string {
  return failureCode || wordOf(OutcomeSchema, outcome);
}

function printRun(run: Run): void {
  const { generation, intelligenceTrace: trace, notices, calls, callsLeftOut } = run;
  if (!generation) return;
  printRequest(run, generation);

  if (!trace) {
    console.log("How it was answered is not kept.");
    return;
  }
  const level = wordOf(EffortSchema, generation.level);
  if (trace.reasons.length > 0) console.log(`level ${level}: ${trace.reasons.join("; ")}`);
  if (trace.agreement !== undefined) console.log(`agreement: ${Math.round(trace.agreement * 100)} %`);
  for (const { code, message } of notices) console.log(`notice ${code}: ${message}`);
  console.log();
  printTable(["STEP", "WHAT", "WHO", "START", "TIME", "END", "RESULT"], trace.steps.map(stepRow));
  if (calls.length === 0) return;
  const isNamed = calls.some(({ model }) => model !== "");
  console.log();
  printTable(["CALL OF STEP", isNamed ? "MODEL" : "ROLE", "START", "TIME", "END", "IN", "OUT", ""], calls.map(callRow));
  if (callsLeftOut > 0) console.log(`${callsLeftOut} further calls are not kept.`);
}

/** What is known of the request apart from its steps. */
function printRequest({ running, costUsd }: Run, generation: Generation): void {
  const { inputTokens, outputTokens, cachedTokens, latencyMs, credits } = generation;
  const state = running ? "runs" : endOf(generation);
  const time = `${running ? "for" : "in"} ${grouped(latencyMs)} ms`;
  console.log(`${generation.id}: ${state} at level ${wordOf(EffortSchema, generation.level)} ${time}`);
  const key = safe(generation.keyName || generation.keyId);
  console.log(`${timeText(generation.at)} UTC, key ${key}, ${generation.requestId}`);
  if (running) {
    console.log(`${grouped(inputTokens)} input tokens`);
    return;
  }
  const cached = cachedTokens > 0n ? ` (${grouped(cachedTokens)} cached)` : "";
  const cost = costUsd === undefined ? "" : `; its calls cost $${costUsd}`;
  const tokens = `${grouped(inputTokens)} input tokens${cached}, ${grouped(outputTokens)} output tokens`;
  console.log(`${tokens}, ${grouped(credits)} credits${cost}`);
}

function stepRow({ id, kind, role, startedMs, durationMs, outcome, detail = "" }: TraceStep) {
  return [
    number(id),
    wordOf(StepKindSchema, kind),
    wordOf(StepRoleSchema, role),
    number(startedMs, " ms"),
    durationMs === undefined ? "-" : number(durationMs, " ms"),
    outcome === undefined ? "-" : wordOf(StepOutcomeSchema, outcome),
    detail,
  ];
}

function callRow(call: RunCall) {
  const { step, model, vendor, version, role, status, code, costUsd } = call;
  const who = model === "" ? wordOf(StepRoleSchema, role) : `${model} (${vendor}${version ? ` ${version}` : ""})`;
  const why = [status === undefined ? "" : `status ${status}`, code, costUsd === undefined ? "" : `$${costUsd}`];
  return [
    step === 0 ? "-" : number(step),
    who,
    number(call.startedMs, " ms"),
    number(call.durationMs, " ms"),
    wordOf(CallOutcomeSchema, call.outcome),
    number(call.inputTokens),
    number(call.outputTokens),
    why.filter((word) => word !== "").join(" "),
  ];
}
