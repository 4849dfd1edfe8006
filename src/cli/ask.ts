import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import {
  FinishReason,
  GenerateResponseSchema,
  GenerationService,
  type Notice,
} from "../../gen/chorus/v1/generation_pb.js";
import { messageJson, printJson, safe } from "./print.ts";
import { callerClient, type GlobalOptions, operatorClient, type Secret } from "./service.ts";

/** Longest life of the key that is made for one question when none is given, in milliseconds. */
const KEY_MS = 600_000;

export function addAsk(program: Command): void {
  program
    .command("ask")
    .description("ask a question and print the answer as it comes")
    .argument("<prompt...>", "the question")
    .option("--workspace <workspace>", "workspace that is charged when CHORUS_API_KEY is not set", "default")
    .action(async (words: string[], options: { workspace: string }, command: Command) => {
      const prompt = words.join(" ");
      const given = process.env.CHORUS_API_KEY;
      if (given) return ask(prompt, command, { text: given, source: "CHORUS_API_KEY" });
      // Without a key of his own, an operator asks with one that lives for this question.
      const keys = await operatorClient(KeyService, command);
      const expiresAt = timestampFromDate(new Date(Date.now() + KEY_MS));
      const about = { workspace: options.workspace, name: "chorus ask", scopes: ["generate"], expiresAt };
      const { key, secret } = await keys.createKey(about);
      try {
        await ask(prompt, command, { text: secret, source: "the key made for this question" });
      } finally {
        await keys.revokeKey({ id: key?.id ?? "" });
      }
    });
}

async function ask(prompt: string, command: Command, apiKey: Secret): Promise<void> {
  const client = await callerClient(GenerationService, command, apiKey);
  if (command.optsWithGlobals<GlobalOptions>().json) {
    const response = await client.generate({ prompt });
    const finish_reason = FinishReason[response.finishReason]?.toLowerCase() ?? "";
    printJson({ ...messageJson(GenerateResponseSchema, response), finish_reason });
    return;
  }
  let notices: Notice[] = [];
  for await (const { event } of client.streamGenerate({ prompt })) {
    if (event.case === "delta") process.stdout.write(safe(event.value.text));
    else if (event.case === "done") notices = event.value.notices;
  }
  process.stdout.write("\n");
  for (const { message } of notices) console.error(safe(message));
}
