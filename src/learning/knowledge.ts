import { setImmediate as turn } from "node:timers/promises";
import { repeat } from "../concurrency/repeat.ts";
import { ABILITIES, type Ability } from "../contract/terms.ts";
import type { Member } from "../models/catalogue.ts";
import { isOnline, type Knowledge, type Learned, rank, strengthOf } from "../models/order.ts";
import type { Pool } from "../store/pool.ts";
import type { InternalErrors } from "../telemetry/internal-errors.ts";
import { fitAccuracies, type PairCount, type Prior } from "./fit.ts";

/** Sums of one pair of models and ability, of the versions that their vendors serve now. */
export interface Duel extends PairCount {
  oneFingerprint: string;
  otherFingerprint: string;
  ability: string;
}

/** Fewest graded disagreements of an ability from which something is learned. */
export const LEAST = 10;
/** Time between two reads of the sums, in milliseconds. */
const READ_MS = 10_000;
/** Keeps the prior order of models to which the fit gives the same accuracy. */
const STEP = 1e-9;

/** What has been learned of the models of a catalogue, which the process follows. */
export interface Learning {
  /** What has been learned so far. */
  readonly knowledge: Knowledge;
  /** Reads the sums and learns from them. Also call it when the catalogue has changed. Never rejects. */
  refresh(): Promise<void>;
  stop(): Promise<void>;
}

/**
 * Learns from the sums that all replicas share, and reads them every ten seconds. When a read fails, what was learned
 * stays.
 * @param members the models of the current catalogue
 */
export function startLearning(
  pool: Pick<Pool, "query">,
  members: () => readonly Member[],
  { errors, readMs = READ_MS }: { errors: InternalErrors; readMs?: number },
): Learning {
  let knowledge: Knowledge = () => undefined;
  let last: Promise<void> = Promise.resolve();

  async function read(): Promise<void> {
    try {
      const duels = await readDuels(pool);
      const next = new Map<string, Learned>();
      for (const ability of ABILITIES) {
        for (const [name, each] of learn(members(), duels, ability)) next.set(keyOf(name, ability), each);
        // A fit of many models takes a millisecond.
        await turn();
      }
      knowledge = (model, ability) => next.get(keyOf(model, ability));
    } catch (error) {
      errors.add("learning", error);
    }
  }

  const refresh = () => {
    last = last.then(read);
    return last;
  };
  const reading = repeat(refresh, readMs, { waitsFirst: true });
  return {
    get knowledge() {
      return knowledge;
    },
    refresh,
    async stop() {
      await reading.stop();
      await last;
    },
  };
}

/**
 * Reads the sums of all pairs: at most one row for two entries of the catalogue and an ability. Sums of a version that
 * the vendor no longer serves are under a fingerprint that no entry has.
 */
export function readDuels(pool: Pick<Pool, "query">): Promise<Duel[]> {
  return pool.query<Duel>(
    `with current as (
       select distinct on (model, entry) model, entry, served from served_versions order by model, entry, noted_at desc)
     select d.one, coalesce(a.entry, d.one_fingerprint) as "oneFingerprint", d.other,
       coalesce(b.entry, d.other_fingerprint) as "otherFingerprint", d.ability,
       sum(d.wins)::float8 as wins, sum(d.losses)::float8 as losses
     from model_duels d
     left join current a on a.model = d.one and a.served = d.one_fingerprint
     left join current b on b.model = d.other and b.served = d.other_fingerprint
     where d.wins + d.losses > 0 group by 1, 2, 3, 4, 5`,
  );
}

/** The sums of an ability between models of the catalogue. Sums of a changed entry are left out. */
export function currentPairs(members: readonly Member[], duels: readonly Duel[], ability: Ability): PairCount[] {
  const current = new Set(members.filter(isOnline).map(({ name, fingerprint }) => keyOf(name, fingerprint)));
  return duels.filter(
    (duel) =>
      duel.ability === ability &&
      current.has(keyOf(duel.one, duel.oneFingerprint)) &&
      current.has(keyOf(duel.other, duel.otherFingerprint)),
  );
}

/** Learns the accuracies of all models for an ability. @returns an empty map while too little is known */
export function learn(members: readonly Member[], duels: readonly Duel[], ability: Ability): Map<string, Learned> {
  const pairs = currentPairs(members, duels, ability);
  const graded = pairs.reduce((sum, { wins, losses }) => sum + wins + losses, 0);
  if (graded < LEAST) return new Map();
  const sentence = `learned from ${graded} graded disagreements`;
  const priors = priorsOf(members, ability);
  const fitted = fitAccuracies(priors, pairs);
  return new Map(
    priors.map(({ name, accuracy }, place) => [
      name,
      { accuracy: (fitted.get(name) ?? accuracy) - place * STEP, sentence },
    ]),
  );
}

/** The models with the accuracy by which they would be ordered if nothing were learned, best first. */
export function priorsOf(members: readonly Member[], ability: Ability): Prior[] {
  return rank(members.filter(isOnline), ability).members.map((member) => ({
    name: member.name,
    accuracy: strengthOf(member),
  }));
}

function keyOf(name: string, of: string): string {
  return `${of} ${name}`;
}
