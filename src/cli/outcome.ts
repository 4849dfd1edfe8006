import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Command, Option } from "commander";
import {
  GenerationService,
  type RecordOutcomeRequestSchema,
  RecordOutcomeResponseSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { withAskKey } from "./ask-key.ts";
import { callerClient } from "./clients.ts";
import { show } from "./command.ts";
import { CliError, type Secret } from "./target.ts";

interface Options {
  score?: string;
  correct?: true;
  wrong?: true;
  expected?: string;
  workspace?: string;
}

export function addOutcome(program: Command): void {
  program
    .command("outcome")
    .description("record how good an answer of the last seven days was; the last outcome counts")
    .argument("<id>", "identifier of the answer, such as gen_…; chorus --json ask prints it")
    .addOption(new Option("--score <n>", "0 (useless or wrong) to 1").conflicts(["correct", "wrong"]))
    .addOption(new Option("--correct", "the answer was right").conflicts("wrong"))
    .option("--wrong", "the answer was wrong")
    .option("--expected <text>", "the right answer, which is compared and never stored")
    .option(
      "--workspace <workspace>",
      "workspace of the answer if CHORUS_API_KEY is not set (default: the owner's own, else default)",
    )
    .action(async (id: string, { workspace, ...given }: Options, command: Command) => {
      const request = readOutcome(id, given);
      await withAskKey(command, workspace, (key) => record(request, command, key));
    });
}

type Request = MessageInitShape<typeof RecordOutcomeRequestSchema>;

function readOutcome(id: string, { score, correct, wrong, expected }: Options): Request {
  if (score === undefined && !correct && !wrong && !expected) {
    throw new CliError("Give one of --score, --correct, --wrong and --expected.");
  }
  const number = score === undefined || score.trim() === "" ? Number.NaN : Number(score);
  if (score !== undefined && !(number >= 0 && number <= 1)) throw new CliError("--score must be a number from 0 to 1.");
  return {
    id,
    ...(score === undefined ? {} : { score: number }),
    ...(correct || wrong ? { correct: correct === true } : {}),
    ...(expected ? { expected } : {}),
  };
}

async function record(request: Request, command: Command, apiKey: Secret): Promise<void> {
  const response = await (await callerClient(GenerationService, command, apiKey)).recordOutcome(request);
  show(command, RecordOutcomeResponseSchema, response, ({ score, generationId }) =>
    console.log(`recorded the score ${score} for ${generationId}`),
  );
}
