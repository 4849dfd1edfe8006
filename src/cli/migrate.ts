import type { Command } from "commander";
import { wantsJson } from "./command.ts";
import { databaseUrl } from "./database-url.ts";
import { printJson } from "./print.ts";
import { CliError } from "./target.ts";

/** `chorus migrate`: brings the schema of the database in DATABASE_URL up to date. It needs no running service. */
export function addMigrate(program: Command): void {
  program
    .command("migrate")
    .description("bring the schema of the database in DATABASE_URL up to date; needs no running service")
    .action(async (_: unknown, command: Command) => {
      const url = databaseUrl();
      if (!url) {
        throw new CliError(
          "DATABASE_URL is not set. Set it, or DATABASE_URL_FILE, to the database of the service. A service migrates " +
            "its embedded Postgres.",
        );
      }
      // No other command needs the driver of the database.
      const { migrateDatabase } = await import("./migrate-database.ts");
      const { migrations, functions } = await migrateDatabase(url);
      if (wantsJson(command)) return printJson({ migrations: [...migrations], functions: [...functions] });
      for (const id of migrations) console.log(`Applied migration ${id}.`);
      if (functions.length > 0) console.log(`Updated functions: ${functions.join(", ")}.`);
      console.log("The schema is up to date.");
    });
}
