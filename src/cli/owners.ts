import type { Command } from "commander";
import { WorkspaceService } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { operatorClient } from "./clients.ts";
import { showLink, wantsJson } from "./command.ts";
import { printJson, printTable, timeText } from "./print.ts";
import { parseTime } from "./time.ts";

export function addOwners(program: Command): void {
  const owners = program.command("owners").description("let the owner of a workspace in: sign-in links, owner tokens");
  addLink(owners);
  addCreate(owners);
}

function addLink(owners: Command): void {
  owners
    .command("link")
    .description("create a link that signs one browser in to the console, once and within 15 minutes")
    .argument("<workspace>", "name or identifier")
    .action(async (workspace: string, _: unknown, command: Command) => {
      const client = await operatorClient(WorkspaceService, command);
      const { path, expiresAt } = await client.createSignInLink({ workspace });
      await showLink(command, path, { workspace, expires_at: `${timeText(expiresAt).replace(" ", "T")}Z` });
    });
}

function addCreate(owners: Command): void {
  owners
    .command("create")
    .description("create the owner token of a workspace, shown only once; the previous token stops working")
    .argument("<workspace>", "name or identifier")
    .option(
      "--expires <time>",
      "when it stops working: a time such as 2027-01-31T00:00:00Z, or a duration such as 12h or 30d",
    )
    .action(async (workspace: string, { expires }: { expires?: string }, command: Command) => {
      const client = await operatorClient(WorkspaceService, command);
      const made = await client.createOwnerToken({
        workspace,
        ...(expires === undefined ? {} : { expiresAt: parseTime("--expires", expires, 1) }),
      });
      const name = made.workspace?.name ?? "";
      if (wantsJson(command)) {
        const expires_at = made.expiresAt ? { expires_at: timeText(made.expiresAt).replace(" ", "T").concat("Z") } : {};
        printJson({ id: made.id, workspace: name, token: made.token, ...expires_at });
      } else {
        printTable(["ID", "WORKSPACE", "EXPIRES (UTC)"], [[made.id, name, timeText(made.expiresAt)]]);
        console.log(`\nOwner token (shown only once): ${made.token}`);
      }
    });
}
