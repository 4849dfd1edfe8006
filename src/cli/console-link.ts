import type { Command } from "commander";
import { wantsJson } from "./command.ts";
import { printJson } from "./print.ts";
import { findTarget } from "./target.ts";

/**
 * Prints a link to the console: its address where that is known, else its path with what to put in front.
 * @param facts further members of the JSON document
 */
export async function showLink(command: Command, path: string, facts: object): Promise<void> {
  const { restUrl: url } = await findTarget(command);
  if (wantsJson(command)) printJson({ ...facts, path, ...(url ? { url: url + path } : {}) });
  else if (url) console.log(url + path);
  else console.log(`${path}\n\nPut the public address of the service in front, such as https://chorus.example.com`);
}
