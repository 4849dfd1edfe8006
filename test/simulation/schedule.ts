import type { Call, Mutation, Replica, Request } from "./actors.ts";
import { disturb, drawDisturbances } from "./disturbances.ts";
import { changeLimits, openAccount, WORKSPACES } from "./operator.ts";
import { World } from "./world.ts";

/** Steps of one schedule. */
export const STEPS = 100;

export interface Options {
  /** A defect to plant. */
  mutation?: Mutation;
  /** Takes the calls of the database. */
  calls?: Call[];
  /** Without disturbances and subjects. */
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
  if (!isUndisturbed) {
    // In three of four schedules the month does not end.
    world.epoch -= world.odd.integer(0, 3) * 3_600_000;
    world.room = world.odd.isLikely(0.6) ? world.odd.integer(2, 6) : 1;
  }
  for (const workspace of WORKSPACES) openAccount(world, workspace, isUndisturbed);
  if (!isUndisturbed) world.subjects.open();
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
    if (disturbances) disturb(world, disturbances, () => changeLimits(world, world.odd));
    world.subjects.step();
    act(world);
    if (world.more.isLikely(0.1)) world.post(world.more.pick(WORKSPACES));
    world.advance(random.isLikely(0.04) ? random.integer(100, 12_000) : random.integer(0, 12));
    world.checks.holds();
  }
  finish(world);
  return world;
}

function act(world: World): void {
  const { random } = world;
  const chance = random.next();
  const replica = random.pick(world.live);
  if (chance < 0.5) request(world, replica);
  else if (chance < 0.82) settle(world);
  else if (chance < 0.84) world.grant(random.pick(WORKSPACES), random.integer(1, 500));
  else if (chance < 0.86) changeLimits(world, random);
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
    replica.deaf.until = Math.min(replica.deaf.until, world.now);
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
