import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import type { Command } from "commander";
import { addProfile, type Profiles, profilesFile, writeProfiles } from "../discovery/profiles.ts";
import { wantsJson } from "./command.ts";
import { printJson, printTable } from "./print.ts";
import { CliError, type GlobalOptions, storedProfiles } from "./target.ts";

/** `chorus profile`: names services, so that the command line finds them from any folder. */
export function addProfiles(program: Command): void {
  const profile = program.command("profile").description("name services, to reach them from any folder");
  addAdd(profile);
  addList(profile);
  profile
    .command("use")
    .description("use a profile when none is named")
    .argument("<name>", "name of the profile")
    .action((name: string) => change(name, (stored) => ({ ...stored, default: name })));
  profile
    .command("remove")
    .description("remove a profile")
    .argument("<name>", "name of the profile")
    .action((name: string) =>
      change(name, ({ default: first, profiles: { [name]: _, ...profiles } }) =>
        first === name || first === undefined ? { profiles } : { default: first, profiles },
      ),
    );
}

function addAdd(profile: Command): void {
  profile
    .command("add")
    .description(
      "add or replace a profile: of a service on this machine with --data-dir, of another with --rpc-url and a token " +
        "from OPERATOR_TOKEN, OWNER_TOKEN or standard input",
    )
    .argument("<name>", "name of the profile: letters, digits, '.', '_' and '-'")
    .option("--data-dir <folder>", "data folder of a service on this machine, which holds its address and token")
    .action(async (name: string, { dataDir }: { dataDir?: string }, command: Command) => {
      if (!/^[\w.-]{1,64}$/.test(name) || name === "__proto__")
        throw new CliError("The name of a profile must have 1 to 64 of A-Z, a-z, 0-9, '.', '_' and '-'.");
      await storedProfiles();
      const { rpcUrl } = command.optsWithGlobals<GlobalOptions>();
      if (dataDir !== undefined) await addProfile(process.env, name, { dataDir: resolve(dataDir) });
      else if (rpcUrl) await addProfile(process.env, name, { rpcUrl, token: await readToken() });
      else throw new CliError("Name the service: --data-dir FOLDER, or --rpc-url URL.");
      console.log(`Wrote the profile "${name}" to ${profilesFile(process.env)}. Use it: chorus --profile ${name} …`);
    });
}

async function readToken(): Promise<string> {
  const { OPERATOR_TOKEN, OWNER_TOKEN } = process.env;
  const token = OPERATOR_TOKEN || OWNER_TOKEN || (process.stdin.isTTY ? "" : (await text(process.stdin)).trim());
  if (token) return token;
  throw new CliError("Set OPERATOR_TOKEN or OWNER_TOKEN, or pass the token on standard input.");
}

function addList(profile: Command): void {
  profile
    .command("list")
    .description("list the profiles, without their tokens")
    .action(async (_: unknown, command: Command) => {
      const stored = await storedProfiles();
      const all = Object.entries(stored.profiles).map(([name, { dataDir, rpcUrl }]) => ({
        name,
        service: dataDir ?? rpcUrl ?? "",
        default: name === stored.default,
      }));
      if (wantsJson(command)) printJson({ profiles: all });
      else
        printTable(
          ["NAME", "SERVICE", "DEFAULT"],
          all.map((of) => [of.name, of.service, of.default ? "yes" : ""]),
        );
    });
}

/** Changes the profiles. @throws CliError when there is no profile with the name */
async function change(name: string, make: (stored: Profiles) => Profiles): Promise<void> {
  const stored = await storedProfiles();
  if (!Object.hasOwn(stored.profiles, name)) throw new CliError(`There is no profile "${name}".`);
  await writeProfiles(process.env, make(stored));
}
