import { type Limits, newAccount } from "./account.ts";
import type { Call, Mutation, Replica, Request } from "./actors.ts";
import { disturb, drawDisturbances } from "./disturbances.ts";
import type { Random } from "./random.ts";
import { World } from "./world.ts";

const WORKSPACES = ["ws_1", "ws_2"] as const;

/** Steps of one schedule. */
export const STEPS = 100;

export interface Options {
  /** A defect to plant. */
  mutation?: Mutation;
  /** Takes the calls of the database. */
  calls?: Call[];
  /** Without disturbances. */
  isUndisturbed?: boolean;
  /** Without idempotency keys and crashes of the database, too. */
  isPlain?: boolean;
}

/**
 * Runs the schedule of a seed: replicas, requests, settlements, faults and changes of limits, then the end of all
 * faults and requests.
 * @throws Violation of the first invariant that does not hold
 */
export function runSchedule(
  seed: number,
  { mutation = {}, calls, isPlain = false, isUndisturbed = isPlain }: Options = {},
): World {
  const world = new World(seed, mutation, calls);
  const { random } = world;
  // In three of four schedules the month does not end.
  if (!isUndisturbed) world.epoch -= world.odd.integer(0, 3) * 3_600_000;
  for (const workspace of WORKSPACES) openAccount(world, workspace, isUndisturbed);
  const replicas = random.integer(1, 3);
  for (let i = 0; i < replicas; i++) world.start();
  // A third of the schedules has no faults, so that they are long.
  world.faults = random.isLikely(0.33) ? 0 : random.next() * 0.2;
  world.isCalm = world.faults === 0;
  world.crashes = world.faults > 0 && !isPlain;
  world.hasKeys = !isPlain && world.more.isLikely(0.5);
  const disturbances = isUndisturbed ? undefined : drawDisturbances(world);
  for (let step = 0; step < STEPS; step++) {
    if (world.crashes && world.more.isLikely(0.015)) world.network.crash();
    if (disturbances) disturb(world, disturbances, () => limit(world, world.odd, world.odd.isLikely(0.1)));
    act(world);
    if (world.more.isLikely(0.1)) world.post(world.more.pick(WORKSPACES));
    world.advance(random.isLikely(0.04) ? random.integer(100, 12_000) : random.integer(0, 12));
    world.checks.holds();
  }
  finish(world);
  return world;
}

function openAccount(world: World, workspace: string, isUndisturbed: boolean): void {
  const { random, odd } = world;
  const account = newAccount(world.clock, { granted: random.integer(0, 4_000), purchased: random.integer(0, 4_000) });
  account.limits = limitsOf(random, random.integer(0, 127));
  if (!isUndisturbed && odd.isLikely(0.3))
    account.limits.output = { ...account.limits.output, minute: odd.integer(0, 90) };
  world.server.open(workspace, account);
  world.checks.opened(workspace);
}

/** @param present which limits there are, one bit each */
function limitsOf(random: Random, present: number): Limits {
  const one = (bit: number, most: number): number | undefined =>
    (present & bit) > 0 ? random.integer(0, most) : undefined;
  const limits = {
    running: one(1, 12),
    requests: windowsOf({ minute: one(2, 30), month: one(4, 60) }),
    input: windowsOf({ minute: one(8, 300), day: one(16, 600) }),
    output: windowsOf({ day: one(32, 400) }),
    spend: windowsOf({ day: one(64, 2_000), month: one(64, 5_000) }),
  };
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined));
}

function windowsOf(limits: Record<string, number | undefined>): object {
  return Object.fromEntries(Object.entries(limits).filter(([, limit]) => limit !== undefined));
}

function act(world: World): void {
  const { random } = world;
  const chance = random.next();
  const replica = random.pick(world.live);
  if (chance < 0.5) request(world, replica);
  else if (chance < 0.82) settle(world);
  else if (chance < 0.84) world.grant(random.pick(WORKSPACES), random.integer(1, 500));
  else if (chance < 0.86) limit(world, random);
  else if (chance < 0.87) world.tell(replica, { type: "report", workspace: random.pick(WORKSPACES) });
  else if (world.faults === 0) return;
  else if (chance < 0.88) restart(world, replica);
  else if (chance < 0.89) sleep(world, replica);
  else if (chance < 0.91) replica.cutOffUntil = world.now + random.integer(10, 25_000);
  else if (chance < 0.92) world.epoch += random.integer(-600_000, 600_000);
}

function request(world: World, replica: Replica): void {
  const { random } = world;
  const count = random.isLikely(0.1) ? random.integer(2, 10) : 1;
  for (let i = 0; i < count; i++) {
    const workspace = random.pick(WORKSPACES);
    const size = { hold: random.integer(1, 200), input: random.integer(0, 20) };
    world.request(replica, workspace, { ...size, ...keyOf(world, workspace) });
  }
}

/** An idempotency key: a new one, or that of one of the last requests, which another replica may have. */
function keyOf(world: World, workspace: string): { key?: string; body?: string } {
  const { more, requests } = world;
  if (!world.hasKeys || more.isLikely(0.6)) return {};
  const keyed = [...requests.values()].filter((request) => request.workspace === workspace && request.key);
  const key = keyed.length > 0 && more.isLikely(0.7) ? more.pick(keyed.slice(-4)).key : undefined;
  const body = more.isLikely(0.1) ? "0b" : "0a";
  return { key: key ?? requests.size.toString(16).padStart(4, "0"), body };
}

function settle(world: World): void {
  const running = runningOf(world);
  if (running.length > 0) end(world, world.random.pick(running));
}

function runningOf({ requests }: World): Request[] {
  return [...requests.values()].filter(({ state }) => state === "running");
}

function end(world: World, request: Request): void {
  const charge = world.random.isLikely(0.2) ? 0 : world.random.integer(0, request.hold);
  world.settle(request, charge, world.random.integer(0, 30));
}

/** @param isFree whether limits can be new, and can be removed */
function limit(world: World, random: Random, isFree = false): void {
  const workspace = random.pick(WORKSPACES);
  if (isFree) {
    world.limit(workspace, limitsOf(random, random.integer(0, 127)));
    return;
  }
  const before = world.database.accounts.get(workspace)?.limits;
  const drawn = limitsOf(random, 127);
  if (before?.output?.minute !== undefined) drawn.output = { ...drawn.output, minute: world.odd.integer(0, 90) };
  // Values change. Which limits there are does not.
  const keys = (of: object | undefined) => Object.keys(of ?? {});
  const kept = Object.entries(drawn).flatMap(([name, value]) => {
    const now = before?.[name as keyof Limits];
    if (now === undefined) return [];
    if (typeof value !== "object") return [[name, value]];
    return [[name, Object.fromEntries(Object.entries(value).filter(([unit]) => keys(now as object).includes(unit)))]];
  });
  world.limit(workspace, Object.fromEntries(kept));
}

function restart(world: World, replica: Replica): void {
  world.kill(replica);
  world.start(replica.journal);
}

function sleep(world: World, replica: Replica): void {
  if (replica.state !== "up") return;
  replica.state = "asleep";
  replica.wakesAt = world.now + world.random.integer(1, 20_000);
}

/** Ends all faults and requests, and waits until nothing is reserved. */
function finish(world: World): void {
  world.faults = 0;
  world.crashes = false;
  for (const replica of world.replicas) {
    replica.cutOffUntil = 0;
    replica.deaf.until = 0;
  }
  world.advance(30_000);
  for (const request of runningOf(world)) end(world, request);
  world.advance(10_000);
  // A process finds grants that a late statement has opened.
  for (const replica of world.live) {
    for (const [workspace, { grants }] of world.database.accounts) {
      const grant = grants.get(replica.id)?.id;
      if (grant !== undefined) world.tell(replica, { type: "find", workspace, grant });
    }
  }
  // The longest time for which unused headroom is kept.
  world.advance(35_000);
  world.checks.holds();
  world.checks.ended();
}
