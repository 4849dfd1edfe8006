import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Command, Option } from "commander";
import { KeyService, Scope } from "../../gen/chorus/admin/v1/keys_pb.js";
import {
  EffortSchema,
  type GenerateRequestSchema,
  GenerateResponseSchema,
  GenerationService,
  StepKindSchema,
  type StreamGenerateResponse_Done,
} from "../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../json-names.ts";
import { type QuestionOptions, readQuestion } from "./ask-input.ts";
import { callerClient, json, operatorClient, type Secret } from "./clients.ts";
import { messageJson, printJson, safe } from "./print.ts";
import { statusLine } from "./status.ts";

/** Longest life of the key that is made for one question when none is given, in milliseconds. */
const KEY_MS = 600_000;
/** How often the status line is drawn, in milliseconds. */
const STATUS_MS = 100;
/** Characters that the status line takes for one token until the service has counted. */
const TOKEN_CHARACTERS = 4;

type Question = MessageInitShape<typeof GenerateRequestSchema>;

export function addAsk(program: Command): void {
  program
    .command("ask")
    .description("ask a question and print the answer as it comes")
    .argument(
      "[prompt...]",
      "the question; a word - stands for standard input, which is read as well when there is no word",
    )
    .option("--system <text>", "instructions: persona, tone, format")
    .addOption(
      new Option("--effort <effort>", "ceiling on the intelligence applied")
        .choices(["auto", "low", "medium", "high"])
        .default("auto"),
    )
    .option("--max-tokens <n>", "ceiling on the length of the answer")
    .option("--file <path>", "attach a file: text, PDF, docx or image; may be given five times", collect, [])
    .option("--schema <path>", "answer with JSON that is valid against the JSON Schema in this file")
    .option("--extract", "answer with a JSON object whose members the question asks for", false)
    .option("--search", "search the web first", false)
    .option("--workspace <workspace>", "workspace that is charged when CHORUS_API_KEY is not set", "default")
    .addHelpText(
      "after",
      `
Examples:
  chorus ask "What is 6 * 7?"
  chorus ask "Which invoice is overdue?" --file invoices.csv
  git diff | chorus ask "Write a commit message for this:" -
  chorus ask "INV-7, total EUR 12.50" --schema invoice.schema.json`,
    )
    .action(async (words: string[], options: QuestionOptions & { workspace: string }, command: Command) => {
      const question = await readQuestion(words, options);
      const given = process.env.CHORUS_API_KEY;
      if (given) return ask(question, command, { text: given, source: "CHORUS_API_KEY" });
      // Without a key of his own, an operator asks with one that lives for this question.
      const keys = await operatorClient(KeyService, command);
      const expiresAt = timestampFromDate(new Date(Date.now() + KEY_MS));
      const about = { workspace: options.workspace, name: "chorus ask", scopes: [Scope.GENERATE], expiresAt };
      const { key, secret } = await keys.createKey(about);
      try {
        await ask(question, command, { text: secret, source: "the key made for this question" });
      } finally {
        await keys.revokeKey({ id: key?.id ?? "" });
      }
    });
}

async function ask(question: Question, command: Command, apiKey: Secret): Promise<void> {
  const client = await callerClient(GenerationService, command, apiKey);
  if (json(command)) {
    const response = await client.generate(question);
    printJson(messageJson(GenerateResponseSchema, response));
    return;
  }
  const status = statusLine(process.stderr);
  const startedAt = performance.now();
  let [doing, characters] = ["thinking", 0];
  const seconds = () => `${((performance.now() - startedAt) / 1_000).toFixed(1)} s`;
  const draw = () => {
    const tokens = characters === 0 ? [] : [`about ${Math.ceil(characters / TOKEN_CHARACTERS)} tokens`];
    status.show([doing, seconds(), ...tokens].join(" · "));
  };
  const timer = setInterval(draw, STATUS_MS);
  let done: Pick<StreamGenerateResponse_Done, "notices" | "usage" | "intelligenceTrace"> | undefined;
  try {
    // What is known to be valid only when it is whole is not streamed; and the trace is asked for where somebody can see it.
    const asked = { ...question, ...(process.stderr.isTTY ? { intelligenceTrace: true } : {}) };
    if (asked.responseFormat) {
      const response = await client.generate(asked);
      process.stdout.write(safe(response.answer));
      done = response;
    } else {
      for await (const { event } of client.streamGenerate(asked)) {
        if (event.case === "delta") {
          doing = "writing";
          characters += event.value.text.length;
          process.stdout.write(safe(event.value.text));
        } else if (event.case === "trace" && characters === 0 && event.value.step)
          doing = wordOf(StepKindSchema, event.value.step.kind) || "thinking";
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

function summary(
  done: Pick<StreamGenerateResponse_Done, "usage" | "intelligenceTrace"> | undefined,
  took: string,
): string {
  const level = done?.intelligenceTrace?.intelligenceLevel;
  return [
    ...(level ? [wordOf(EffortSchema, level)] : []),
    took,
    `${done?.usage?.inputTokens ?? 0} + ${done?.usage?.outputTokens ?? 0} tokens`,
    `${done?.usage?.credits ?? 0} credits`,
  ].join(" · ");
}

function collect(value: string, before: string[]): string[] {
  return [...before, value];
}
