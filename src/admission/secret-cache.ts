import type { Clock } from "../contract/clock.ts";
import { copyOf } from "../contract/text-cache.ts";
import { WAITING } from "../overload/bounds.ts";
import type { Notifications } from "../store/notifications.ts";
import { orOverloaded } from "../store/pool.ts";
import { createBatcher } from "./batch.ts";
import { hashSecret, MAX_SECRET_LENGTH } from "./secret.ts";

/**
 * Ages of a cached look-up, in milliseconds from its start. From `refresh` on, a secret in use is looked up again in
 * the background; from `max` on, its users wait for that. Including the time of the look-up, a revoked secret stops
 * working on all replicas within one second.
 */
const ALONE_MS = { refresh: 250, max: 500 };

/** The same while each change of a secret arrives as a message within a second. The bound is for a lost trigger. */
const HEARD_MS = { refresh: 30_000, max: 60_000 };

/** Channel on which the function `announce_secret` sends the hash of a changed or deleted secret, in hexadecimal. */
const CHANNEL = "chorus_secrets";

/** Largest number of cached valid secrets, and of cached unknown ones. About 7 MB together. */
const MAX_CACHED = 10_000;

/** What a valid secret gives access to. */
interface Valid {
  /** Time from which the secret is refused, in milliseconds since 1970; Infinity: never. */
  readonly expiresAt: number;
}

interface LookUp<Found> {
  /** When the look-up started, in milliseconds. */
  readonly startedAt: number;
  /** Period of the notifications at that time. */
  readonly period: number | undefined;
  /** Undefined when the secret is not valid. */
  readonly found: Found | undefined;
}

export interface SecretCache<Found> {
  /**
   * Finds what a secret gives access to.
   * @returns undefined for a secret that is absent, too long, unknown, revoked or expired; without a promise if the
   *   cache knows it
   * @throws Failure `overloaded` when the database is unavailable, or too many unknown secrets wait for their look-up
   */
  find(secret: string | undefined): Found | undefined | Promise<Found | undefined>;
  /** Removes a secret from the cache, so that a change to it takes effect in this process at once. */
  forget(hash: Buffer): void;
}

/** The name of a hash in the result of a look-up. */
export function hashName(hash: Buffer): string {
  return hash.toString("latin1");
}

/** Names of the hashes of valid secrets. To make one takes 4 µs. */
const names = new Map<string, string>();

function remember(secret: string, name: string): void {
  if (names.has(secret)) return;
  if (names.size >= MAX_CACHED) names.clear();
  names.set(copyOf(secret), name);
}

/**
 * Creates a cache over a table of secrets. Valid and unknown secrets are cached apart, so that a flood of invented ones
 * cannot evict the valid ones. Look-ups are batched, so that the flood costs one statement at a time. Secrets that were
 * valid before have batches apart from the others, so that they do not wait behind the flood.
 * @param read looks up hashes in one statement and returns those of valid secrets, by `hashName`
 * @param notifications report changes of secrets; without them, or while they are interrupted, a valid secret in use is
 *   looked up again every quarter of a second
 */
export function createSecretCache<Found extends Valid>(
  read: (hashes: Buffer[]) => Promise<ReadonlyMap<string, Found>>,
  clock: Clock,
  notifications?: Notifications,
): SecretCache<Found> {
  const valid = new Map<string, LookUp<Found>>();
  const unknown = new Map<string, LookUp<Found>>();
  const pending = new Map<string, { startedAt: number; result: Promise<LookUp<Found>> }>();
  const readBatch = async (hashes: Buffer[]): Promise<LookUp<Found>[]> => {
    const startedAt = clock();
    const period = notifications?.period;
    const found = await read(hashes);
    return hashes.map((hash) => ({ startedAt, period, found: found.get(hashName(hash)) }));
  };
  const lookUpKnown = createBatcher(readBatch, WAITING.lookUps);
  const lookUpUnknown = createBatcher(readBatch, WAITING.lookUps);
  const unexpired = ({ found }: LookUp<Found>) => (found && found.expiresAt > clock() ? found : undefined);
  const isFresh = (startedAt: number, ms: number): boolean => clock() - startedAt < ms && clock() >= startedAt;
  // Messages are about secrets that exist.
  const agesOf = ({ found, period }: LookUp<Found>) =>
    found && period !== undefined && period === notifications?.period ? HEARD_MS : ALONE_MS;

  function store(name: string, lookUp: LookUp<Found>): void {
    valid.delete(name);
    unknown.delete(name);
    const map = lookUp.found ? valid : unknown;
    map.set(name, lookUp);
    // The first entry is the one whose look-up is the oldest.
    const [oldest = name] = map.keys();
    if (map.size > MAX_CACHED) map.delete(oldest);
  }

  function load(name: string): Promise<LookUp<Found>> {
    const earlier = pending.get(name);
    if (earlier && isFresh(earlier.startedAt, ALONE_MS.max)) return earlier.result;
    const lookUp = valid.has(name) ? lookUpKnown : lookUpUnknown;
    // A look-up that `forget` has removed may have read the row before the change.
    const isCurrent = () => pending.get(name)?.result === result;
    const result: Promise<LookUp<Found>> = orOverloaded(lookUp(Buffer.from(name, "latin1")))
      .then((found) => {
        if (isCurrent()) store(name, found);
        return found;
      })
      .finally(() => isCurrent() && pending.delete(name));
    pending.set(name, { startedAt: clock(), result });
    return result;
  }

  function forget(hash: Buffer): void {
    const name = hashName(hash);
    valid.delete(name);
    pending.delete(name);
  }
  notifications?.listen(CHANNEL, (hash) => forget(Buffer.from(hash, "hex")));

  return {
    find(secret) {
      if (!secret || secret.length > MAX_SECRET_LENGTH) return undefined;
      const name = names.get(secret) ?? hashName(hashSecret(secret));
      const lookUp = valid.get(name) ?? unknown.get(name);
      const ages = lookUp ? agesOf(lookUp) : ALONE_MS;
      if (!lookUp || !isFresh(lookUp.startedAt, ages.max)) return load(name).then(unexpired);
      // A failure is ignored here: the next one that has to wait for the look-up gets it.
      if (lookUp.found && !isFresh(lookUp.startedAt, ages.refresh)) load(name).catch(() => undefined);
      if (lookUp.found) remember(secret, name);
      return unexpired(lookUp);
    },
    forget,
  };
}
