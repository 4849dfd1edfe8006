import { type Limits, newAccount } from "./account.ts";
import type { Random } from "./random.ts";
import type { World } from "./world.ts";

export const WORKSPACES = ["ws_1", "ws_2"] as const;

/** Opens the account of a workspace. */
export function openAccount(world: World, workspace: string, isUndisturbed: boolean): void {
  const { random, odd, room } = world;
  const account = newAccount(world.clock, { granted: random.integer(0, 4_000), purchased: random.integer(0, 4_000) });
  account.limits = limitsOf(random, random.integer(0, 127));
  if (room > 1) {
    account.granted *= room;
    account.purchased *= room;
    account.limits = limitsOf(odd, presence(odd), room);
  }
  if (!isUndisturbed && odd.isLikely(0.3))
    account.limits.output = { ...account.limits.output, minute: odd.integer(0, 90 * room) };
  world.server.open(workspace, account);
  world.checks.opened(workspace);
}

/** Changes the values of limits; now and then, among the disturbances, also which limits there are. */
export function changeLimits(world: World, random: Random): void {
  const { odd, room } = world;
  const workspace = random.pick(WORKSPACES);
  if (random === odd && odd.isLikely(0.1)) {
    world.limit(workspace, limitsOf(odd, presence(odd), room));
    return;
  }
  const before = world.database.accounts.get(workspace)?.limits;
  const drawn = limitsOf(random, 127, room);
  if (before?.output?.minute !== undefined) drawn.output = { ...drawn.output, minute: odd.integer(0, 90 * room) };
  const keys = (of: object | undefined) => Object.keys(of ?? {});
  const kept = Object.entries(drawn).flatMap(([name, value]) => {
    const now = before?.[name as keyof Limits];
    if (now === undefined) return [];
    if (typeof value !== "object") return [[name, value]];
    return [[name, Object.fromEntries(Object.entries(value).filter(([unit]) => keys(now as object).includes(unit)))]];
  });
  world.limit(workspace, Object.fromEntries(kept));
}

/** Each limit with a probability of a quarter. */
function presence(odd: Random): number {
  return odd.integer(0, 127) & odd.integer(0, 127);
}

/**
 * @param present which limits there are, one bit each
 * @param room factor of the highest values
 */
function limitsOf(random: Random, present: number, room = 1): Limits {
  const one = (bit: number, most: number): number | undefined =>
    (present & bit) > 0 ? random.integer(0, most * room) : undefined;
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
