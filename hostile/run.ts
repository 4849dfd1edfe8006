import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import type { AttackInput } from "./attacker.ts";
import { type Child, startChild } from "./child.ts";
import { callAdmin, createWorkspace, type Environment, startHostedService } from "./environment.ts";
import type { Figures } from "./figures.ts";
import { type Faults, faultsOf } from "./gates.ts";
import type { NeighbourInput } from "./neighbour.ts";
import { type ProcessFacts, processFacts } from "./proc.ts";
import { type AttackCounts, recordInto } from "./recorder.ts";
import type { AttackScenario } from "./scenario.ts";

/** Everything that one attack showed. */
export interface AttackResult extends AttackCounts, Faults {
  name: string;
  quiet: Figures;
  attacked: Figures;
  /** Some seconds after the attack. */
  rested: Figures;
  /** Of the service: before the attack, at its end with all connections of the attacker, and after it. */
  before: ProcessFacts;
  atEnd: ProcessFacts;
  after: ProcessFacts;
}

/**
 * Gives the attacker and all its threads the lowest priority, so that the neighbour's latencies are its own. With
 * SCHED_IDLE (Linux) it stops as soon as another process has something to do; with `nice`, up to some ms later.
 */
const LOWEST = spawnSync("chrt", ["--idle", "0", "true"]).status === 0 ? ["chrt", "--idle", "0"] : ["nice", "-n", "19"];

const SECONDS = { warmUp: 1.5, quiet: 4, attack: 6, rest: 2 };

/** Runs one attack, and again if it only made the neighbour slow, which the machine may have done. */
export async function runAttack(environment: Environment, scenario: AttackScenario): Promise<AttackResult> {
  const result = await runOnce(environment, scenario);
  return result.wrong.length === 0 && result.slow.length > 0 ? runOnce(environment, scenario) : result;
}

/** Starts a new service and attacks it with the neighbour beside it. */
async function runOnce(environment: Environment, scenario: AttackScenario): Promise<AttackResult> {
  await using stack = new AsyncDisposableStack();
  const service = await startHostedService(stack, environment, scenario);
  const { pid } = service.process;
  const neighbour = stack.use(await startNeighbour(environment, service));
  const { keys, keyIds } = await createAttackers(environment, scenario);
  const attackInput: AttackInput = { name: scenario.name, url: service.url, rpcUrl: service.rpcUrl, keys };
  const attacker = stack.use(startChild("attacker.ts", attackInput, LOWEST));

  await sleep(SECONDS.warmUp * 1_000);
  const quiet = await measure(neighbour, () => sleep(SECONDS.quiet * 1_000));
  const before = processFacts(pid);
  const ms = (scenario.seconds ?? SECONDS.attack) * 1_000;
  const problems: string[] = [];
  const seen: AttackCounts = { counts: {}, longest: {} };
  const attacked = await measure(neighbour, async () => {
    await attacker.ask("begin");
    const stage = { service, database: environment.database, keyIds, ms, ...recordInto(seen) };
    const during = scenario.during?.(stage).catch((error: Error) => [error.message]);
    await sleep(ms);
    problems.push(...((await during) ?? []));
  });
  const atEnd = processFacts(pid);
  const { counts, longest } = await attacker.ask<AttackCounts>("end");
  await attacker[Symbol.asyncDispose]();
  await sleep(SECONDS.rest * 1_000);
  const after = processFacts(pid);
  const rested = await measure(neighbour, () => sleep(SECONDS.rest * 1_000));
  if (service.process.exitCode !== null) problems.push(`the service ended with ${service.process.exitCode}`);
  const result = { name: scenario.name, quiet, attacked, rested, before, atEnd, after };
  const { wrong, slow } = faultsOf(result, scenario);
  const happened = { counts: { ...counts, ...seen.counts }, longest: { ...longest, ...seen.longest } };
  return { ...result, ...happened, wrong: [...wrong, ...problems], slow };
}

async function startNeighbour({ database }: Environment, service: Service): Promise<Child> {
  const { id, secrets } = await createWorkspace(database, { credits: 1_000_000, tier: "unlimited" });
  const { token = "" } = await callAdmin(service, "WorkspaceService/CreateOwnerToken", { workspace: id });
  const { url, rpcUrl, operatorToken } = service;
  const input: NeighbourInput = {
    ...{ url, rpcUrl, operatorToken, ownerToken: token },
    key: secrets[0] ?? "",
    workspaceId: id,
  };
  return startChild("neighbour.ts", input);
}

type Service = Awaited<ReturnType<typeof startHostedService>>;

async function createAttackers({ database }: Environment, { attackers = [{}] }: AttackScenario) {
  const keys: string[] = [];
  const keyIds: string[] = [];
  for (const attacker of attackers) {
    const workspace = await createWorkspace(database, attacker);
    keys.push(...workspace.secrets);
    keyIds.push(...workspace.keyIds);
  }
  return { keys, keyIds };
}

async function measure(neighbour: Child, run: () => Promise<void>): Promise<Figures> {
  await neighbour.ask("begin");
  await run();
  return neighbour.ask<Figures>("end");
}
