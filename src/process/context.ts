import type { Config } from "../config/config.ts";
import type { OwnNames } from "../names/own-names.ts";
import type { InternalErrors } from "../telemetry/internal-errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import type { DisabledModels } from "./disabled-models.ts";
import type { linkToPrimary } from "./workers/link.ts";

/** What each step of the start needs. */
export interface Context {
  /** The process of this replica: its environment, its output, its signals. */
  readonly host: NodeJS.Process;
  /** Undefined in a process that is the only one of its service. */
  readonly primary: ReturnType<typeof linkToPrimary>;
  readonly config: Config;
  readonly log: Log;
  readonly telemetry: Telemetry;
  readonly errors: InternalErrors;
  /** Addresses of the names in the configuration. They stay known after a reload. */
  readonly names: OwnNames;
  readonly disabled: DisabledModels;
  /** Reports the state of this replica soon, from the end of the start. */
  readonly reporting: { soon(): void };
  /** Takes what has to be stopped. */
  readonly stack: AsyncDisposableStack;
}
