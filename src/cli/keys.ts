import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Client } from "@connectrpc/connect";
import { type Command, Option } from "commander";
import {
  CreateKeyResponseSchema,
  type Key,
  KeySchema,
  KeyService,
  type KeyTags,
  RevokeKeyResponseSchema,
  ScopeSchema,
  TakeOverKeyResponseSchema,
  type UpdateKeyRequestSchema,
  UpdateKeyResponseSchema,
} from "../../gen/chorus/admin/v1/keys_pb.js";
import { wordOf } from "../contract/json-names.ts";
import { operatorClient } from "./clients.ts";
import { enumOf, parseTags, readPages, repeated, show, wantsJson } from "./command.ts";
import { messageJson, printJson, printTable, timeText } from "./print.ts";
import { CliError } from "./target.ts";
import { parseTime } from "./time.ts";

export function addKeys(program: Command): void {
  const keys = program.command("keys").description("create, change, list and revoke API keys");
  addCreate(keys);
  addList(keys);
  addUpdate(keys);
  addRevoke(keys);
  addTakeOver(keys);
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
    .option("--tag <name=value>", "tag of each of its requests; repeat for up to 8", repeated)
    .option("--forbid-tags", "refuse requests that name other tags")
    .option("--forbid-text", "never keep the text of its requests")
    .action(
      async (
        options: TagOptions & { forbidText?: true } & {
          workspace?: string;
          name?: string;
          scope?: string[];
          expires?: string;
        },
        command: Command,
      ) => {
        const client = await operatorClient(KeyService, command);
        const response = await client.createKey({
          workspace: options.workspace ?? "",
          name: options.name ?? "",
          scopes: (options.scope ?? []).map((text) => enumOf("--scope", ScopeSchema, text)),
          ...(options.expires === undefined ? {} : { expiresAt: parseTime("--expires", options.expires, 1) }),
          ...tagsOf(options),
          forbidsText: options.forbidText ?? false,
        });
        show(command, CreateKeyResponseSchema, response, ({ key, secret }) => {
          printKey({ key });
          console.log(`\nSecret (shown only once): ${secret}`);
        });
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
      const { entries } = await readPages("keys", (page) => client.listKeys({ workspace, ...page }));
      if (wantsJson(command)) printJson({ keys: entries.map((key) => messageJson(KeySchema, key)) });
      else printKeys(entries);
    });
}

function addUpdate(keys: Command): void {
  keys
    .command("update")
    .description("rename a key, or change when it stops working, its tags, or whether its text may be kept")
    .argument("<id>", "identifier of the key, such as key_…")
    .option("--name <name>", "new name")
    .option("--expires <time>", "when it stops working: a time, a duration such as 30d, or never")
    .option(
      "--tag <name=value>",
      "tag of each of its requests, in place of the present ones; repeat for up to 8",
      repeated,
    )
    .option("--forbid-tags", "refuse requests that name other tags")
    .addOption(new Option("--allow-tags", "let requests name other tags").conflicts("forbidTags"))
    .addOption(new Option("--clear-tags", "neither set nor forbid tags").conflicts(["tag", "forbidTags", "allowTags"]))
    .option("--forbid-text", "never keep the text of its requests from now on")
    .option("--allow-text", "keep the text of its requests where the workspace keeps texts")
    .action(async (id: string, options: UpdateOptions, command: Command) => {
      const { name, expires, forbidText, allowText } = options;
      if (forbidText && allowText) throw new CliError("--forbid-text and --allow-text exclude each other. Use one.");
      const client = await operatorClient(KeyService, command);
      const response = await client.updateKey({
        id,
        ...(await changedTags(client, id, options)),
        ...(name === undefined ? {} : { name }),
        ...(expires === undefined ? {} : { expiry: expiryOf(expires) }),
        ...(forbidText || allowText ? { forbidsText: forbidText === true } : {}),
      });
      show(command, UpdateKeyResponseSchema, response, printKey);
    });
}

function addRevoke(keys: Command): void {
  keys
    .command("revoke")
    .description("revoke a key; it stops working everywhere within a second")
    .argument("<id>", "identifier of the key, such as key_…")
    .action(async (id: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(KeyService, command)).revokeKey({ id });
      show(command, RevokeKeyResponseSchema, response, printKey);
    });
}

function addTakeOver(keys: Command): void {
  keys
    .command("take-over")
    .description("keep a key that would end with the member who holds it; nobody holds it then")
    .argument("<id>", "identifier of the key, such as key_…")
    .action(async (id: string, _: unknown, command: Command) => {
      const response = await (await operatorClient(KeyService, command)).takeOverKey({ id });
      show(command, TakeOverKeyResponseSchema, response, printKey);
    });
}

interface UpdateOptions extends TagOptions {
  name?: string;
  expires?: string;
  forbidText?: true;
  allowText?: true;
}

interface TagOptions {
  tag?: string[];
  forbidTags?: boolean;
  allowTags?: boolean;
  clearTags?: boolean;
}

type ChangedTags = Pick<MessageInitShape<typeof UpdateKeyRequestSchema>, "tags">;

function tagsOf({ tag, forbidTags = false }: TagOptions): ChangedTags {
  return tag || forbidTags ? { tags: { fixed: parseTags(tag), forbidsOthers: forbidTags } } : {};
}

/** The tags of a key with the changes that options name: its tags, or whether it forbids others, or both. */
async function changedTags(client: Client<typeof KeyService>, id: string, options: TagOptions): Promise<ChangedTags> {
  const { tag, forbidTags, allowTags, clearTags } = options;
  if (clearTags) return { tags: {} };
  const forbids = forbidTags || allowTags ? forbidTags === true : undefined;
  if (tag === undefined && forbids === undefined) return {};
  const given = tag && parseTags(tag);
  // The service replaces both together.
  const present = given === undefined || forbids === undefined ? await presentTags(client, id) : undefined;
  const { fixed = {}, forbidsOthers = false } = present ?? {};
  return { tags: { fixed: given ?? fixed, forbidsOthers: forbids ?? forbidsOthers } };
}

async function presentTags(client: Client<typeof KeyService>, id: string): Promise<KeyTags | undefined> {
  const { entries } = await readPages("keys", (page) => client.listKeys(page));
  return entries.find((key) => key.id === id)?.tags;
}

function printKey({ key }: { key?: Key | undefined }): void {
  printKeys(key ? [key] : []);
}

function printKeys(keys: readonly Key[]): void {
  const rows = keys.map((key) => [
    key.id,
    key.workspace,
    key.name || "-",
    `${key.prefix}…`,
    key.scopes.map((scope) => wordOf(ScopeSchema, scope)).join(","),
    key.holder?.name || key.holder?.email || "-",
    timeText(key.createdAt),
    timeText(key.expiresAt),
    timeText(key.revokedAt),
  ]);
  printTable(["ID", "WORKSPACE", "NAME", "SECRET", "SCOPES", "HOLDER", "CREATED (UTC)", "EXPIRES", "REVOKED"], rows);
}

function expiryOf(text: string): NonNullable<MessageInitShape<typeof UpdateKeyRequestSchema>["expiry"]> {
  if (text === "never") return { case: "neverExpires", value: {} };
  return { case: "expiresAt", value: parseTime("--expires", text, 1) };
}
