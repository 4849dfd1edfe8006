import { LARGE_BODIES } from "./attacks/bodies.ts";
import { DATABASE } from "./attacks/database.ts";
import { FLOODS } from "./attacks/floods.ts";
import { HTTP2 } from "./attacks/http2.ts";
import { IDLE } from "./attacks/idle.ts";
import { HARD_PATTERNS, POISON } from "./attacks/poison.ts";
import { SHARED } from "./attacks/shared.ts";
import { START } from "./attacks/start.ts";
import { STREAMS } from "./attacks/streams.ts";
import { WEBHOOKS } from "./attacks/webhooks.ts";
import type { Scenario } from "./scenario.ts";

/** Everything that the suite does, in this order. */
export const SCENARIOS: readonly Scenario[] = [
  ...START,
  ...IDLE,
  ...STREAMS,
  ...POISON,
  HARD_PATTERNS,
  ...LARGE_BODIES,
  ...FLOODS,
  ...SHARED,
  ...HTTP2,
  ...WEBHOOKS,
  ...DATABASE,
];
