import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import { FailureDetailSchema } from "../../gen/chorus/v1/failure_pb.js";
import {
  EffortSchema,
  type GenerateRequestSchema,
  GenerateResponseSchema,
  GenerationService,
  StepKindSchema,
  type StreamGenerateResponse_Done,
} from "../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { type AskOptions, readAskRequest } from "./ask-input.ts";
import { withAskKey } from "./ask-key.ts";
import { callerClient } from "./clients.ts";
import { repeated, wantsJson } from "./command.ts";
import { messageJson, printJson, safe } from "./print.ts";
import { statusLine } from "./status.ts";
import { CliError, type Secret } from "./target.ts";

/** How often the status line is drawn, in milliseconds. */
const STATUS_MS = 100;
/** Characters per token, for the estimate in the status line. */
const TOKEN_CHARACTERS = 4;

type AskRequest = MessageInitShape<typeof GenerateRequestSchema>;
/** What a finished answer says about itself, streamed or not. */
type Done = Pick<StreamGenerateResponse_Done, "notices" | "usage" | "intelligenceTrace">;

export function addAsk(program: Command): void {
  program
    .command("ask")
    .description("send a prompt and print the answer while it is generated")
    .argument(
      "[prompt...]",
      "the prompt; a word - is replaced with standard input, which is also read without a prompt",
    )
    .option("--system <text>", "instructions: persona, tone, format")
    .addOption(
      new Option("--effort <effort>", "upper limit of the intelligence level")
        .choices(["auto", "low", "medium", "high"])
        .default("auto"),
    )
    .option("--max-tokens <n>", "upper limit of the answer's length, in tokens")
    .option("--file <path>", "attach a file: text, PDF, docx or image; repeat for up to five files", repeated)
    .option("--schema <path>", "answer with JSON that is valid against the JSON Schema in this file")
    .option("--extract", "answer with a JSON object; the prompt describes its members")
    .option("--search", "search the web first")
    .option("--user <id>", "your end user, for whom usage is summed up")
    .option("--tag <name=value>", "label by which usage is summed up; repeat for up to 8", repeated)
    .option(
      "--workspace <workspace>",
      "workspace to charge if CHORUS_API_KEY is not set (default: the owner's own, else default)",
    )
    .addHelpText(
      "after",
      `
Examples:
  chorus ask "What is 6 * 7?"
  chorus ask "Which invoice is overdue?" --file invoices.csv
  git diff | chorus ask "Write a commit message for this:" -
  chorus ask "INV-7, total EUR 12.50" --schema invoice.schema.json`,
    )
    .action(async (words: string[], options: AskOptions & { workspace?: string }, command: Command) => {
      const request = await readAskRequest(words, options);
      const run = (key: Secret) => ask(request, command, key).catch((error) => explainSchema(error, options.schema));
      await withAskKey(command, options.workspace, run);
    });
}

async function ask(request: AskRequest, command: Command, apiKey: Secret): Promise<void> {
  const client = await callerClient(GenerationService, command, apiKey);
  if (wantsJson(command)) {
    const response = await client.generate(request);
    printJson(messageJson(GenerateResponseSchema, response));
    return;
  }
  const status = statusLine(process.stderr);
  const startedAt = performance.now();
  let [activity, characters] = ["thinking", 0];
  const seconds = () => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
  const draw = () => {
    const tokens = characters === 0 ? [] : [`about ${Math.ceil(characters / TOKEN_CHARACTERS)} tokens`];
    status.show([activity, seconds(), ...tokens].join(" · "));
  };
  const timer = setInterval(draw, STATUS_MS);
  let done: Done | undefined;
  try {
    // The trace feeds the status line, which only a terminal shows.
    const traced = { ...request, ...(process.stderr.isTTY ? { intelligenceTrace: true } : {}) };
    // JSON against a schema cannot be streamed: it is valid only when it is complete.
    if (traced.responseFormat) {
      const response = await client.generate(traced);
      process.stdout.write(shown(response.answer));
      done = response;
    } else {
      for await (const { event } of client.streamGenerate(traced)) {
        if (event.case === "delta") {
          activity = "writing";
          characters += event.value.text.length;
          process.stdout.write(shown(event.value.text));
        } else if (event.case === "trace" && characters === 0 && event.value.step)
          activity = wordOf(StepKindSchema, event.value.step.kind) || "thinking";
        else if (event.case === "done") done = event.value;
      }
    }
  } finally {
    clearInterval(timer);
    status.end();
  }
  process.stdout.write("\n");
  for (const { message } of done?.notices ?? []) console.error(safe(message));
  if (process.stderr.isTTY) console.error(summary(done, seconds()));
}

/** Text of an answer: safe for a terminal, unchanged for a file or another program. */
function shown(text: string): string {
  return process.stdout.isTTY ? safe(text) : text;
}

/** Adds the file and the place in it to the failure of a schema. @throws the error */
function explainSchema(error: unknown, file: string | undefined): never {
  const failure = ConnectError.from(error);
  const detail = failure.findDetails(FailureDetailSchema)[0];
  if (file === undefined || detail?.code !== "invalid_response_schema") throw error;
  const node = detail.field.replace(/^response_format\.schema\.?/, "");
  throw new CliError(`--schema: ${file}${node && ` at ${node}`}: ${failure.rawMessage}`);
}

function summary(done: Done | undefined, took: string): string {
  const level = done?.intelligenceTrace?.intelligenceLevel;
  return [
    ...(level ? [wordOf(EffortSchema, level)] : []),
    took,
    `${done?.usage?.inputTokens ?? 0} + ${done?.usage?.outputTokens ?? 0} tokens`,
    `${done?.usage?.credits ?? 0} credits`,
  ].join(" · ");
}
