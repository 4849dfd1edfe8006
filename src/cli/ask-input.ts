import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { text } from "node:stream/consumers";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { EffortSchema, type GenerateRequestSchema, OutputShape } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../contract/json-names.ts";
import { mediaTypeOf } from "../contract/media-types.ts";
import { parseTags } from "./command.ts";
import { CliError } from "./target.ts";

/** Options of `chorus ask` that shape the request. */
export interface AskOptions {
  system?: string;
  /** A word of the enum, which the command line has checked. */
  effort: string;
  maxTokens?: string;
  file?: string[];
  schema?: string;
  extract?: boolean;
  search?: boolean;
  user?: string;
  tag?: string[];
}

/**
 * Builds the request from arguments, files and standard input.
 * @param words the prompt; a word `-` is replaced with standard input, which is the whole prompt if there are no words
 * @throws CliError naming the invalid option
 */
export async function readAskRequest(
  words: readonly string[],
  options: AskOptions,
): Promise<MessageInitShape<typeof GenerateRequestSchema>> {
  if (options.maxTokens !== undefined && !/^\d{1,6}$/.test(options.maxTokens))
    throw new CliError(`--max-tokens must be a whole number, but is "${options.maxTokens}".`);
  const attachments = await Promise.all(
    (options.file ?? []).map(async (path) => ({
      name: basename(path),
      mediaType: mediaTypeOf(basename(path)),
      data: await bytesOf("--file", path),
    })),
  );
  const schema = options.schema === undefined ? undefined : await bytesOf("--schema", options.schema);
  return {
    prompt: await promptOf(words),
    effort: numberOf(EffortSchema, options.effort),
    attachments,
    ...(options.system === undefined ? {} : { system: options.system }),
    ...(options.maxTokens === undefined ? {} : { maxTokens: Number(options.maxTokens) }),
    ...(options.search ? { webSearch: true } : {}),
    ...(options.user === undefined ? {} : { user: options.user }),
    tags: parseTags(options.tag),
    ...(options.extract ? { outputShape: OutputShape.EXTRACT } : {}),
    ...(schema
      ? { responseFormat: { format: { case: "jsonSchema", value: { schema: new TextDecoder().decode(schema) } } } }
      : {}),
  };
}

async function promptOf(words: readonly string[]): Promise<string> {
  const piped = !process.stdin.isTTY;
  if (words.length === 0 && !piped)
    throw new CliError('Pass a prompt, such as chorus ask "What is 6 * 7?", or pipe one to standard input.');
  if (words.length > 0 && !words.includes("-")) return words.join(" ");
  const input = (await text(process.stdin)).trimEnd();
  const prompt = words.length === 0 ? input : words.map((word) => (word === "-" ? `\n\n${input}` : word)).join(" ");
  if (prompt.trim() === "")
    throw new CliError("Standard input is empty. Pipe a prompt to it, or pass one as argument.");
  return prompt;
}

async function bytesOf(option: string, path: string): Promise<Uint8Array> {
  try {
    return await readFile(path);
  } catch (error) {
    const code = error instanceof Error && "code" in error ? ` (${String(error.code)})` : "";
    throw new CliError(`${option}: ${path} cannot be read${code}.`);
  }
}
