import { create } from "@bufbuild/protobuf";
import { CreateSignInLinkRequestSchema } from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { bootstrap, createSecrets, DEFAULT_WORKSPACE } from "../admin/bootstrap.ts";
import { BOOTSTRAP } from "../admin/shared/audit.ts";
import { createSignInLink } from "../admin/workspaces/sign-in-link.ts";
import type { Config } from "../config/config.ts";
import { checkPrivateFile } from "../discovery/data-folder.ts";
import type { Pool } from "../store/pool.ts";
import type { WorkerReady } from "./workers/messages.ts";

interface FirstRunOptions {
  /** Whether the service uses the embedded Postgres, so that its output is read by the person who started it. */
  readonly local: boolean;
  /** Whether to create a sign-in link. Of several workers, one does. */
  readonly link: boolean;
  /** Repeats a step while the database is not available. */
  repeat<T>(step: () => Promise<T>): Promise<T>;
}

/**
 * Prepares the database for its first use. With a database of the operator, the output may be collected with the logs
 * of a cluster, so secrets are created only if there is a file for them.
 * @throws Error naming CHORUS_SECRETS_FILE when that file cannot be written
 */
export async function firstRun(
  pool: Pool,
  { bootstrapApiKey: apiKey, operatorToken, secretsFile }: Config,
  { local, link, repeat }: FirstRunOptions,
): Promise<Pick<WorkerReady, "secrets" | "lacksOperator" | "signInPath">> {
  if (secretsFile) await checkPrivateFile("CHORUS_SECRETS_FILE", secretsFile);
  const offered = local || secretsFile ? createSecrets() : null;
  const { created, lacksOperator } = await repeat(() => bootstrap(pool, { apiKey, operatorToken }, offered));
  // The secrets must be shown, so nothing may fail from here on. The workspace may have been renamed or deleted.
  const owned = create(CreateSignInLinkRequestSchema, { workspace: DEFAULT_WORKSPACE });
  const made = local && link ? createSignInLink(pool, Date.now)(owned, BOOTSTRAP) : Promise.resolve(undefined);
  const signInPath = await made.then((created) => created?.path).catch(() => undefined);
  return { secrets: created, lacksOperator, signInPath };
}
