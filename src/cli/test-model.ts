import type { Command } from "commander";
import {
  type ModelFailure,
  OperationsService,
  type TestModelResponse,
  TestModelResponseSchema,
} from "../../gen/chorus/admin/v1/operations_pb.js";
import { operatorClient } from "./clients.ts";
import { show } from "./command.ts";
import { grouped, safe } from "./print.ts";

/** `chorus models test`. */
export function addTest(models: Command): void {
  models
    .command("test")
    .description("send a short prompt to a model, which its vendor bills; exit code 1 if it does not answer in 30 s")
    .argument("<model>", "name in the catalogue")
    .action(async (model: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(OperationsService, command)).testModel({ model });
      if (!response.answered) process.exitCode = 1;
      show(command, TestModelResponseSchema, response, () => console.log(safe(testText(model, response))));
    });
}

/** Such as "fast answers: 412 ms, 14 + 2 tokens, 0.000012 USD, gpt-4o-2024-08-06". */
function testText(model: string, of: TestModelResponse): string {
  const time = `${grouped(of.durationMs)} ms`;
  const { failure } = of;
  if (failure) {
    const what = [failure.status, failure.code].filter(Boolean).join(" ") || "failed";
    return `${model} does not answer: ${what}, ${time}.${saidText(failure)}`;
  }
  const tokens = `${grouped(of.inputTokens)} + ${grouped(of.outputTokens)} tokens`;
  const cost = of.costUsd === undefined ? [] : [`${of.costUsd.toFixed(6)} USD`];
  return `${model} answers: ${[time, tokens, ...cost, ...(of.servedVersion ? [of.servedVersion] : [])].join(", ")}`;
}

/** What the vendor says, and what to do. */
export function saidText({ message = "", action = "" }: Partial<ModelFailure> = {}): string {
  return (message && ` The vendor says: ${message}.`) + (action && ` ${action}`);
}
