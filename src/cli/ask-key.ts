import { createHash } from "node:crypto";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Command } from "commander";
import { KeyService, Scope } from "../../gen/chorus/admin/v1/keys_pb.js";
import { configFile, readConfig, writeConfig } from "../discovery/profiles.ts";
import { isRefusedSecret, operatorClient } from "./clients.ts";
import { CliError, findTarget, type Secret } from "./target.ts";

/** Lifetime of the key, in milliseconds. A later request creates the next one. */
const KEY_MS = 30 * 86_400_000;

/** Most keys in the file; the oldest are dropped. */
const MAX_KEYS = 50;

/** Keys by service and workspace, the oldest first. */
type Keys = Record<string, { secret: string; expiresAt: number }>;

/**
 * Runs a request with the API key in CHORUS_API_KEY, else with one of the workspace. That is created once with the
 * operator or owner token, and kept in a file that only this user can read. One that the service no longer accepts is
 * replaced.
 * @param workspace name or identifier; undefined: the owner's own, and `default` for an operator
 * @throws CliError when there is no token, and when the key cannot be kept
 */
export async function withAskKey(
  command: Command,
  workspace: string | undefined,
  run: (apiKey: Secret) => Promise<void>,
): Promise<void> {
  const { CHORUS_API_KEY: given } = process.env;
  if (given) return run({ text: given, source: "CHORUS_API_KEY" });
  const { place, token } = await findTarget(command);
  const file = configFile(process.env, "ask-keys.json");
  const isOwner = token?.text.startsWith("ow_");
  // Owners of several workspaces of a service have one token for each.
  const holder =
    workspace ??
    (isOwner
      ? createHash("sha256")
          .update(token?.text ?? "")
          .digest("hex")
      : "default");
  const name = `${place} ${holder}`;
  const keys = await readConfig<Keys>(file).catch((error: Error) => Promise.reject(new CliError(error.message)));
  const kept = keys?.[name];
  const source = `the key kept in ${file}`;
  if (kept && kept.expiresAt > Date.now()) {
    try {
      return await run({ text: kept.secret, source });
    } catch (error) {
      if (!isRefusedSecret(error)) throw error;
    }
  }
  const client = await operatorClient(KeyService, command);
  // Fails before a key is created that could not be kept.
  await keep(file, keys ?? {});
  const expiresAt = new Date(Date.now() + KEY_MS);
  const { secret } = await client.createKey({
    workspace: workspace ?? (isOwner ? "" : "default"),
    name: "chorus ask",
    scopes: [Scope.GENERATE],
    expiresAt: timestampFromDate(expiresAt),
  });
  const { [name]: _, ...others } = keys ?? {};
  await keep(file, { ...others, [name]: { secret, expiresAt: expiresAt.getTime() } });
  await run({ text: secret, source });
}

async function keep(file: string, keys: Keys): Promise<void> {
  try {
    await writeConfig(file, Object.fromEntries(Object.entries(keys).slice(-MAX_KEYS)));
  } catch (error) {
    const cause = error instanceof Error ? error.message : String(error);
    throw new CliError(
      `The key for chorus ask cannot be kept: ${cause}. Set CHORUS_API_KEY, or XDG_CONFIG_HOME to another folder.`,
    );
  }
}
