import { readFile } from "node:fs/promises";
import { basename, extname } from "node:path";
import { text } from "node:stream/consumers";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Effort, type GenerateRequestSchema, OutputShape } from "../../gen/chorus/v1/generation_pb.js";
import { CliError } from "./clients.ts";

export interface QuestionOptions {
  system?: string;
  effort: string;
  maxTokens?: string;
  file: string[];
  schema?: string;
  extract: boolean;
  search: boolean;
}

const EFFORTS: ReadonlyMap<string, Effort> = new Map([
  ["auto", Effort.AUTO],
  ["low", Effort.LOW],
  ["medium", Effort.MEDIUM],
  ["high", Effort.HIGH],
]);

/** Types by the ending of a file's name; anything else is taken for plain text. */
const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  [".md", "text/markdown"],
  [".csv", "text/csv"],
  [".json", "application/json"],
  [".html", "text/html"],
  [".htm", "text/html"],
  [".xml", "application/xml"],
  [".pdf", "application/pdf"],
  [".docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  [".png", "image/png"],
  [".jpg", "image/jpeg"],
  [".jpeg", "image/jpeg"],
  [".webp", "image/webp"],
  [".gif", "image/gif"],
]);

/**
 * Makes the request out of words, files and standard input, which a word `-` stands for.
 * @throws CliError naming the option that cannot be used.
 */
export async function readQuestion(
  words: readonly string[],
  options: QuestionOptions,
): Promise<MessageInitShape<typeof GenerateRequestSchema>> {
  const effort = EFFORTS.get(options.effort);
  if (effort === undefined)
    throw new CliError(`--effort must be ${[...EFFORTS.keys()].join(", ")}, but is "${options.effort}".`);
  if (options.maxTokens !== undefined && !/^\d{1,6}$/.test(options.maxTokens))
    throw new CliError(`--max-tokens must be a whole number, but is "${options.maxTokens}".`);
  const attachments = await Promise.all(
    options.file.map(async (path) => ({
      name: basename(path),
      mediaType: MEDIA_TYPES.get(extname(path).toLowerCase()) ?? "text/plain",
      data: await bytesOf("--file", path),
    })),
  );
  const schema = options.schema === undefined ? undefined : await bytesOf("--schema", options.schema);
  return {
    prompt: await promptOf(words),
    effort,
    attachments,
    ...(options.system === undefined ? {} : { system: options.system }),
    ...(options.maxTokens === undefined ? {} : { maxTokens: Number(options.maxTokens) }),
    ...(options.search ? { webSearch: true } : {}),
    ...(options.extract ? { outputShape: OutputShape.EXTRACT } : {}),
    ...(schema
      ? { responseFormat: { format: { case: "jsonSchema", value: { schema: new TextDecoder().decode(schema) } } } }
      : {}),
  };
}

async function promptOf(words: readonly string[]): Promise<string> {
  const piped = !process.stdin.isTTY;
  if (words.length === 0 && !piped)
    throw new CliError('Give a prompt, such as chorus ask "What is 6 * 7?", or pipe one in.');
  if (words.length > 0 && !words.includes("-")) return words.join(" ");
  const input = (await text(process.stdin)).trimEnd();
  const prompt = words.length === 0 ? input : words.map((word) => (word === "-" ? `\n\n${input}` : word)).join(" ");
  if (prompt.trim() === "") throw new CliError("Standard input is empty. Pipe a prompt in, or give it as an argument.");
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
