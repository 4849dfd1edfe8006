import type { Command } from "commander";
import { CliError } from "./target.ts";

/** Describes `chorus start`, which src/cli/chorus.cjs carries out: the command line is a program of its own. */
export function addStart(program: Command): void {
  program
    .command("start")
    .description("start the service, where it is installed as a package")
    .action(() => {
      throw new CliError("In a clone, start the service with npm start.");
    });
}
