import { DATABASE } from "./attacks/database.ts";
import { POISON } from "./attacks/poison.ts";
import type { Scenario } from "./scenario.ts";

/** Everything that the suite does, in this order. */
export const SCENARIOS: readonly Scenario[] = [...POISON, ...DATABASE];
