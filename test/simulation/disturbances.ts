import { isOpen, type Replica, type Request } from "./actors.ts";
import type { World } from "./world.ts";

const MINUTE = 60_000;

/** Probabilities, in each step, of what only some schedules have. */
export interface Disturbances {
  /** Many requests of one workspace come to one replica, which admits them by itself. */
  busy: number;
  /** The limits change while messages are on their way. */
  limits: number;
  /** Time passes until shortly before the minute ends. */
  minute: number;
  /** A replica gets no call-back for a while. */
  deaf: number;
  /** A replica loses the database while answers end, writes them to its journal, and crashes. */
  outage: number;
}

/** Draws what a schedule has. */
export function drawDisturbances(world: World): Disturbances {
  const { odd, faults } = world;
  const some = (share: number, most: number) => (odd.isLikely(share) ? odd.next() * most : 0);
  const all = {
    busy: some(0.6, 0.8),
    limits: some(0.2, 0.4),
    minute: some(0.3, 0.1),
    deaf: some(0.2, 0.05),
    outage: some(0.2, 0.02),
  };
  return faults === 0 ? { ...all, outage: 0 } : all;
}

/** @param change changes the limits of a workspace */
export function disturb(world: World, disturbances: Disturbances, change: () => void): void {
  const { odd } = world;
  if (odd.isLikely(disturbances.busy)) useMuch(world);
  if (odd.isLikely(disturbances.limits)) world.later(odd.integer(0, 8), change);
  if (odd.isLikely(disturbances.minute)) passToEndOfMinute(world);
  if (odd.isLikely(disturbances.deaf)) makeDeaf(world, odd.pick(world.live));
  // The last one stays, because requests need one.
  if (odd.isLikely(disturbances.outage) && world.live.length > 1) loseDatabase(world, odd.pick(world.live));
}

function useMuch(world: World): void {
  const { odd } = world;
  const replica = world.live[0] as Replica;
  const isIts = (request: Request) => request.replica === replica && request.state === "running";
  for (const request of [...world.requests.values()].filter(isIts))
    if (odd.isLikely(0.5)) world.settle(request, odd.integer(0, request.hold), odd.integer(0, 10));
  for (let i = odd.integer(1, 4); i > 0; i--)
    world.request(replica, "ws_1", { hold: odd.integer(1, 60), input: odd.integer(0, 8) });
}

/** Without faults, time passes. Else the clock of the database jumps, so that the headroom is still there. */
function passToEndOfMinute(world: World): void {
  const left = MINUTE - (world.clock % MINUTE) - world.odd.integer(1, 60);
  if (left <= 0) return;
  if (world.faults === 0) world.advance(left);
  else world.epoch += left;
}

function makeDeaf(world: World, replica: Replica): void {
  const known = world.now + world.odd.integer(0, 3_000);
  replica.deaf = { from: world.now, known, until: known + world.odd.integer(0, 12_000) };
}

function loseDatabase(world: World, replica: Replica): void {
  const { odd, now } = world;
  replica.cutOffUntil = Math.max(replica.cutOffUntil, now + odd.integer(3_500, 9_000));
  const isIts = (request: Request) => request.replica === replica && isOpen(request) && request.state === "running";
  for (const request of [...world.requests.values()].filter(isIts))
    if (odd.isLikely(0.8)) world.settle(request, odd.integer(1, request.hold), odd.integer(0, 30));
  world.later(odd.integer(3_300, 12_000), () => {
    if (replica.state === "dead" || world.live.length === 1) return;
    world.kill(replica);
    // Others use the credit before a new process finds the journal.
    for (const other of world.live)
      for (let i = odd.integer(0, 12); i > 0; i--) world.later(odd.integer(0, 15_000), () => useCredit(world, other));
    world.later(odd.integer(0, 15_000), () => world.start(replica.journal));
  });
}

function useCredit(world: World, replica: Replica): void {
  // The schedule may have ended.
  if (world.faults > 0 && replica.state === "up")
    world.request(replica, "ws_1", { hold: world.odd.integer(50, 800), input: 1 });
}
