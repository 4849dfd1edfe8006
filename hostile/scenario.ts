import type { DatabaseServer } from "../test/helpers/server.ts";
import type { TestService } from "../test/helpers/service.ts";
import type { Recorder } from "./recorder.ts";

/** A workspace that an attack uses. */
export interface Attacker {
  /** Credits. Default 0. */
  credits?: number;
  /** `free`: the limits of the lowest default tier. `unlimited`: none. Default `free`. */
  tier?: "free" | "unlimited";
  /** Limits in place of those of the tier. */
  limits?: Record<string, number>;
  /** Number of keys. Default 1. */
  keys?: number;
}

/** What the process of an attack knows. */
export interface Attack extends Recorder {
  /** Addresses of the public and the internal listener. */
  readonly url: string;
  readonly rpcUrl: string;
  /** Keys of all attackers, in their order. */
  readonly keys: readonly string[];
  /** Aborts at the end of the attack. Connections that are open then stay open. */
  readonly signal: AbortSignal;
}

/** What runs beside an attack in the main process. */
export interface Stage extends Recorder {
  readonly service: TestService;
  readonly database: DatabaseServer;
  /** Identifiers of the attackers' keys. */
  readonly keyIds: readonly string[];
  /** Duration of the attack, in milliseconds. */
  readonly ms: number;
}

/** An attack on a service that also serves a well-behaved workspace. */
export interface AttackScenario {
  readonly name: string;
  /** For the list of scenarios. */
  readonly what: string;
  /** Duration of the attack. Default 6. */
  readonly seconds?: number;
  /** Environment of the service. Default: none, which is the default configuration. */
  readonly env?: Readonly<Record<string, string>>;
  /** Limit of open files of the service. Default: that of this process. */
  readonly openFiles?: number;
  /** The vendor is reached by a name and closes each connection, so each call looks up the name. */
  readonly newConnections?: boolean;
  /** Address of the service's only name server, which uses port 53. Needs root and Linux. */
  readonly nameServer?: string;
  readonly attackers?: readonly Attacker[];
  /** Most sockets that the attack may hold at its end. Default: any number. */
  readonly mostSockets?: number;
  /** Runs in a process of its own until the signal aborts. */
  attack?(attack: Attack): Promise<void>;
  /** Runs beside the attack. @returns what was wrong */
  during?(stage: Stage): Promise<string[]>;
  /**
   * `served` (default): the neighbour sees no error, and its latencies stay within the bounds.
   * `told`: the neighbour may be refused, promptly and with 503, and is served again after the attack.
   */
  readonly neighbour?: "served" | "told";
}

/** Something that a service must do without a neighbour. */
export interface Check {
  readonly name: string;
  readonly what: string;
  /** Whether it runs only if it is named. */
  readonly optional?: boolean;
  run(tools: CheckTools): Promise<{ outcome: string; problems: string[] }>;
}

export interface CheckTools {
  readonly database: DatabaseServer;
  /** Runs the long form. */
  readonly full: boolean;
  /** Takes what has to be undone at the end of the check. */
  readonly stack: AsyncDisposableStack;
}

export type Scenario = AttackScenario | Check;
