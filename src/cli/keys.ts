import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import {
  CreateKeyResponseSchema,
  type Key,
  KeySchema,
  KeyService,
  RevokeKeyResponseSchema,
} from "../../gen/chorus/admin/v1/keys_pb.js";
import { messageJson, printJson, printTable, timeText } from "./print.ts";
import { CliError, type GlobalOptions, operatorClient } from "./service.ts";

export function addKeys(program: Command): void {
  const keys = program.command("keys").description("create, list and revoke API keys");

  keys
    .command("create")
    .description("create a key; its secret is shown this once")
    .requiredOption("--workspace <workspace>", "name or identifier of the workspace")
    .option("--name <name>", "name for people", "")
    .option("--scope <scope>", "what the key may do: generate, metrics (repeat for several; default: all)", collect, [])
    .option(
      "--expires <time>",
      "when it stops working: a time such as 2027-01-31T00:00:00Z, or a span such as 12h or 30d",
    )
    .action(
      async (options: { workspace: string; name: string; scope: string[]; expires?: string }, command: Command) => {
        const client = await operatorClient(KeyService, command);
        const response = await client.createKey({
          workspace: options.workspace,
          name: options.name,
          scopes: options.scope,
          ...(options.expires === undefined ? {} : { expiresAt: timestampFromDate(parseExpiry(options.expires)) }),
        });
        if (json(command)) printJson(messageJson(CreateKeyResponseSchema, response));
        else {
          printKeys(response.key ? [response.key] : []);
          console.log(`\nSecret (shown this once): ${response.secret}`);
        }
      },
    );

  keys
    .command("list")
    .description("list keys, newest first")
    .option("--workspace <workspace>", "keys of this workspace only", "")
    .action(async (options: { workspace: string }, command: Command) => {
      const client = await operatorClient(KeyService, command);
      const all: Key[] = [];
      let pageToken = "";
      do {
        const page = await client.listKeys({ workspace: options.workspace, pageSize: 1000, pageToken });
        all.push(...page.keys);
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      if (json(command)) printJson({ keys: all.map((key) => messageJson(KeySchema, key)) });
      else printKeys(all);
    });

  keys
    .command("revoke")
    .description("revoke a key; it stops working everywhere within a second")
    .argument("<id>", "identifier of the key, such as key_…")
    .action(async (id: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(KeyService, command)).revokeKey({ id });
      if (json(command)) printJson(messageJson(RevokeKeyResponseSchema, response));
      else printKeys(response.key ? [response.key] : []);
    });
}

function printKeys(keys: Key[]): void {
  const rows = keys.map((key) => [
    key.id,
    key.workspace,
    key.name || "-",
    `${key.prefix}…`,
    key.scopes.join(","),
    timeText(key.createdAt),
    timeText(key.expiresAt),
    timeText(key.revokedAt),
  ]);
  printTable(["ID", "WORKSPACE", "NAME", "SECRET", "SCOPES", "CREATED (UTC)", "EXPIRES", "REVOKED"], rows);
}

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 };

function parseExpiry(text: string): Date {
  const [, count, unit = ""] = /^(\d+)([mhd])$/.exec(text) ?? [];
  const isTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text);
  const date = new Date(count ? Date.now() + Number(count) * (UNIT_MS[unit] ?? 0) : isTime ? text : Number.NaN);
  if (Number.isNaN(date.getTime())) {
    throw new CliError(
      `--expires must be a time such as 2027-01-31T00:00:00Z, or a span such as 90m, 12h or 30d, but is "${text}".`,
    );
  }
  return date;
}

function collect(value: string, previous: string[]): string[] {
  return [...previous, value];
}

function json(command: Command): boolean {
  return command.optsWithGlobals<GlobalOptions>().json ?? false;
}
