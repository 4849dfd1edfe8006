import type { Command } from "commander";
import { wantsJson } from "./command.ts";
import { printJson } from "./print.ts";

/** `chorus operators`: works on the database, for an operator who has lost the token. */
export function addOperators(program: Command): void {
  program
    .command("operators")
    .description("replace a lost operator token")
    .command("replace-token")
    .description(
      "replace all operator tokens with a new one, shown only once; works on the database in DATABASE_URL, else on " +
        "the embedded Postgres in DATA_DIR, so it needs no token",
    )
    .action(async (_: unknown, command: Command) => {
      // No other command needs the driver of the database.
      const { replaceToken } = await import("./replace-token.ts");
      const made = await replaceToken();
      if (wantsJson(command)) return printJson({ ...made });
      console.log(`Operator token (shown only once): ${made.token}\n`);
      console.log(`Earlier tokens that no longer work: ${made.replaced}.`);
      console.log(
        "A service that starts with an earlier OPERATOR_TOKEN accepts that again: unset it, or set the new one.",
      );
    });
}
