import { DOORS } from "./door-requests.ts";
import type { Environment } from "./environment.ts";
import { type Entry, type Rounds, type Sample, takeTurns } from "./rounds.ts";

/** The parts of the comparison of doors. The name of each says which requests it sends. */
export const DOOR_KINDS = ["doors unary", "doors tools", "doors burst", "doors paced"] as const;

/** Measures the same answers through each door of one process: whole, with tools, and as streams. */
export async function measureDoors({ startDoors }: Environment, how: Rounds): Promise<Sample[]> {
  await using chorus = await startDoors();
  const samples: Sample[] = [];
  for (const kind of DOOR_KINDS) {
    const shape = kind === "doors burst" ? "burst" : kind === "doors paced" ? "paced" : "unary";
    const entries = DOORS.map((door): Entry => {
      return { name: door, server: chorus.server, target: chorus.target(door, shape, kind === "doors tools") };
    });
    samples.push(...(await takeTurns(kind, entries, how)));
  }
  return samples;
}
