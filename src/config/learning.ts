import { ConfigError, type Env, expectedObject, parse } from "./config-error.ts";
import { oneOf } from "./values.ts";

/** Which model grades, and how much. */
export interface RefereeConfig {
  /** Name in the catalogue. */
  model: string;
  /** Share of the answers whose drafts disagree, 0 to 1. */
  share: number;
  /** Budget of all replicas for a day (UTC), in USD. */
  usdPerDay: number;
}

/** Where the order of the models is learned from. */
export interface LearningConfig {
  /** `referee`: from outcomes and from the referee's verdicts. */
  from: "off" | "outcomes" | "referee";
  /** Undefined unless `from` is `referee`. */
  referee: RefereeConfig | undefined;
}

const EXPECTED = 'CHORUS_REFEREE must be a JSON object such as {"model":"gpt","share":0.1,"usdPerDay":5}';
const MEMBERS: ReadonlySet<string> = new Set(["model", "share", "usdPerDay"]);

/** @throws ConfigError naming the variable, what was expected and what to do */
export function readLearning(env: Env): LearningConfig {
  const from = oneOf(env, "CHORUS_LEARNING", ["off", "outcomes", "referee"]);
  const referee = env.CHORUS_REFEREE ? readReferee(env.CHORUS_REFEREE) : undefined;
  if (referee && from !== "referee")
    throw new ConfigError("CHORUS_REFEREE needs CHORUS_LEARNING=referee. Set that, or unset CHORUS_REFEREE.");
  if (!referee && from === "referee")
    throw new ConfigError("CHORUS_LEARNING=referee needs CHORUS_REFEREE. Set that, or learn from outcomes.");
  return { from, referee };
}

function readReferee(text: string): RefereeConfig {
  const given = expectedObject(parse(text, EXPECTED), EXPECTED);
  const unknown = Object.keys(given).find((name) => !MEMBERS.has(name));
  if (unknown !== undefined) throw new ConfigError(`${EXPECTED}; there is no member "${unknown}". Remove it.`);
  const { model, share, usdPerDay } = given;
  if (typeof model !== "string") throw new ConfigError(`${EXPECTED}; "model" must be a name in the catalogue. Add it.`);
  if (typeof share !== "number" || !(share >= 0 && share <= 1)) {
    throw new ConfigError(`${EXPECTED}; "share" must be a number from 0 to 1. Correct it.`);
  }
  if (typeof usdPerDay !== "number" || !(usdPerDay >= 0 && usdPerDay <= 1_000_000)) {
    throw new ConfigError(`${EXPECTED}; "usdPerDay" must be a number from 0 to 1000000. Correct it.`);
  }
  return { model, share, usdPerDay };
}
