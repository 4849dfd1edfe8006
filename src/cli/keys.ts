import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Command } from "commander";
import {
  CreateKeyResponseSchema,
  type Key,
  KeySchema,
  KeyService,
  RevokeKeyResponseSchema,
  type Scope,
  ScopeSchema,
  type UpdateKeyRequestSchema,
  UpdateKeyResponseSchema,
} from "../../gen/chorus/admin/v1/keys_pb.js";
import { numberOf, wordOf, words } from "../contract/json-names.ts";
import { operatorClient, wantsJson } from "./clients.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";
import { repeated } from "./repeated.ts";
import { CliError } from "./target.ts";
import { parseTime } from "./time.ts";

export function addKeys(program: Command): void {
  const keys = program.command("keys").description("create, change, list and revoke API keys");
  addCreate(keys);
  addList(keys);
  addUpdate(keys);
  addRevoke(keys);
}

function addCreate(keys: Command): void {
  keys
    .command("create")
    .description("create a key; its secret is shown only once")
    .option("--workspace <workspace>", "name or identifier of the workspace; an owner can omit it")
    .option("--name <name>", "name to recognise the key by")
    .option("--scope <scope>", "what the key may do: generate, metrics (repeat for several; default: all)", repeated)
    .option(
      "--expires <time>",
      "when it stops working: a time such as 2027-01-31T00:00:00Z, or a duration such as 12h or 30d",
    )
    .action(
      async (options: { workspace?: string; name?: string; scope?: string[]; expires?: string }, command: Command) => {
        const client = await operatorClient(KeyService, command);
        const response = await client.createKey({
          workspace: options.workspace ?? "",
          name: options.name ?? "",
          scopes: (options.scope ?? []).map(scopeOf),
          ...(options.expires === undefined ? {} : { expiresAt: parseTime("--expires", options.expires, 1) }),
        });
        if (wantsJson(command)) printJson(messageJson(CreateKeyResponseSchema, response));
        else {
          printKeys(response.key ? [response.key] : []);
          console.log(`\nSecret (shown only once): ${response.secret}`);
        }
      },
    );
}

function addList(keys: Command): void {
  keys
    .command("list")
    .description("list keys, newest first")
    .option("--workspace <workspace>", "keys of this workspace only")
    .action(async ({ workspace = "" }: { workspace?: string }, command: Command) => {
      const client = await operatorClient(KeyService, command);
      const all: Key[] = [];
      let pageToken = "";
      do {
        const page = await client.listKeys({ workspace, pageSize: 1000, pageToken });
        all.push(...page.keys);
        pageToken = page.nextPageToken;
      } while (pageToken !== "");
      if (wantsJson(command)) printJson({ keys: all.map((key) => messageJson(KeySchema, key)) });
      else printKeys(all);
    });
}

function addUpdate(keys: Command): void {
  keys
    .command("update")
    .description("rename a key, or change when it stops working")
    .argument("<id>", "identifier of the key, such as key_…")
    .option("--name <name>", "new name")
    .option("--expires <time>", "when it stops working: a time, a duration such as 30d, or never")
    .action(async (id: string, { name, expires }: { name?: string; expires?: string }, command: Command) => {
      const client = await operatorClient(KeyService, command);
      const response = await client.updateKey({
        id,
        ...(name === undefined ? {} : { name }),
        ...(expires === undefined ? {} : { expiry: expiryOf(expires) }),
      });
      if (wantsJson(command)) printJson(messageJson(UpdateKeyResponseSchema, response));
      else printKeys(response.key ? [response.key] : []);
    });
}

function addRevoke(keys: Command): void {
  keys
    .command("revoke")
    .description("revoke a key; it stops working everywhere within a second")
    .argument("<id>", "identifier of the key, such as key_…")
    .action(async (id: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(KeyService, command)).revokeKey({ id });
      if (wantsJson(command)) printJson(messageJson(RevokeKeyResponseSchema, response));
      else printKeys(response.key ? [response.key] : []);
    });
}

function printKeys(keys: Key[]): void {
  const rows = keys.map((key) => [
    key.id,
    key.workspace,
    key.name || "-",
    `${key.prefix}…`,
    key.scopes.map((scope) => wordOf(ScopeSchema, scope)).join(","),
    timeText(key.createdAt),
    timeText(key.expiresAt),
    timeText(key.revokedAt),
  ]);
  printTable(["ID", "WORKSPACE", "NAME", "SECRET", "SCOPES", "CREATED (UTC)", "EXPIRES", "REVOKED"], rows);
}

function expiryOf(text: string): NonNullable<MessageInitShape<typeof UpdateKeyRequestSchema>["expiry"]> {
  if (text === "never") return { case: "neverExpires", value: {} };
  return { case: "expiresAt", value: parseTime("--expires", text, 1) };
}

function scopeOf(text: string): Scope {
  const scope = numberOf(ScopeSchema, text);
  if (scope) return scope;
  throw new CliError(`--scope must be one of ${[...words(ScopeSchema).values()].join(", ")}, but is "${text}".`);
}
