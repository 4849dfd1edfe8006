import { LARGE_BODIES } from "./attacks/bodies.ts";
import { DATABASE } from "./attacks/database.ts";
import { FLOODS } from "./attacks/floods.ts";
import { IDLE } from "./attacks/idle.ts";
import { POISON } from "./attacks/poison.ts";
import { STREAMS } from "./attacks/streams.ts";
import type { Scenario } from "./scenario.ts";

/** Everything that the suite does, in this order. */
export const SCENARIOS: readonly Scenario[] = [...IDLE, ...STREAMS, ...POISON, ...LARGE_BODIES, ...FLOODS, ...DATABASE];
