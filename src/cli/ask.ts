import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { KeyService } from "../../gen/chorus/admin/v1/keys_pb.js";
import { GenerateResponseSchema, GenerationService } from "../../gen/chorus/v1/generation_pb.js";
import { messageJson, printJson, safe } from "./print.ts";
import { callerClient, type GlobalOptions, operatorClient } from "./service.ts";

/** Life of the key that is made for one question when none is given, in milliseconds. */
const KEY_MS = 600_000;

export function addAsk(program: Command): void {
  program
    .command("ask")
    .description("ask a question and print the answer as it comes")
    .argument("<prompt...>", "the question")
    .option("--workspace <workspace>", "workspace that is charged when CHORUS_API_KEY is not set", "default")
    .action(async (words: string[], options: { workspace: string }, command: Command) => {
      const prompt = words.join(" ");
      const apiKey = process.env.CHORUS_API_KEY || (await temporaryKey(command, options.workspace));
      const client = await callerClient(GenerationService, command, apiKey);
      if (command.optsWithGlobals<GlobalOptions>().json) {
        printJson(messageJson(GenerateResponseSchema, await client.generate({ prompt })));
        return;
      }
      for await (const { event } of client.streamGenerate({ prompt })) {
        if (event.case === "delta") process.stdout.write(safe(event.value.text));
      }
      process.stdout.write("\n");
    });
}

/** With CHORUS_API_KEY unset, an operator asks with a key that lives for ten minutes. */
async function temporaryKey(command: Command, workspace: string): Promise<string> {
  const client = await operatorClient(KeyService, command);
  const expiresAt = timestampFromDate(new Date(Date.now() + KEY_MS));
  const { secret } = await client.createKey({ workspace, name: "chorus ask", scopes: ["generate"], expiresAt });
  return secret;
}
