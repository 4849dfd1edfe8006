import { type LookupAddress, promises } from "node:dns";
import { isIP } from "node:net";
import type { Resolve } from "./resolve.ts";

/** Time for which addresses are used without another look-up, in milliseconds. `getaddrinfo` gives no lifetime. */
const FRESH_MS = 10_000;
/** A use in the last part of that time looks the name up again, and takes the addresses that are known. */
const AHEAD_MS = 5_000;
/** Longest wait for a look-up of a name whose last addresses are known. */
const LATE_MS = 500;
/** Time for which the last addresses are used if look-ups fail or take longer than `LATE_MS`. */
const KEPT_MS = 3_600_000;
/** Most names that are kept. An operator has some ten. */
const MAX_NAMES = 256;

export type OwnNames = ReturnType<typeof createOwnNames>;

/** What is known of a name. */
interface Known {
  /** Empty before the first look-up that succeeded. */
  addresses: readonly LookupAddress[];
  /** Times of the clock. */
  foundAt: number;
  freshUntil: number;
  /** The look-up under way. */
  pending: { since: number; promise: Promise<readonly LookupAddress[]> } | undefined;
}

/**
 * Resolves the names that the operator has configured: of vendors, of the search backend, of trusted webhooks. It
 * resolves names as all programs of this machine do (`getaddrinfo`), and keeps the addresses. A look-up holds one of
 * the two threads that libuv has for look-ups, so each name has one at a time. Names that others choose must not be
 * resolved here.
 * @param lookUp default: `getaddrinfo`
 * @param clock milliseconds from any fixed point
 */
export function createOwnNames(
  lookUp: Resolve = (host) => promises.lookup(host, { all: true }),
  clock: () => number = () => performance.now(),
) {
  const names = new Map<string, Known>();

  function knownOf(host: string): Known {
    let known = names.get(host);
    if (!known) {
      known = { addresses: [], foundAt: Number.NEGATIVE_INFINITY, freshUntil: 0, pending: undefined };
      const [oldest] = names.keys();
      if (names.size >= MAX_NAMES && oldest !== undefined) names.delete(oldest);
      names.set(host, known);
    }
    return known;
  }

  /** Looks a name up, unless that is under way. */
  function refresh(host: string, known: Known): NonNullable<Known["pending"]> {
    if (known.pending) return known.pending;
    const promise = lookUp(host).then(
      (addresses) => {
        Object.assign(known, { addresses, foundAt: clock(), freshUntil: clock() + FRESH_MS, pending: undefined });
        return addresses;
      },
      (error) => {
        // Connections do not wait again and again for a name server that is away.
        known.freshUntil = Math.max(known.freshUntil, clock() + FRESH_MS);
        known.pending = undefined;
        throw error;
      },
    );
    promise.catch(() => undefined);
    known.pending = { since: clock(), promise };
    return known.pending;
  }

  return {
    async resolve(host: string): Promise<readonly LookupAddress[]> {
      const known = knownOf(host);
      const { addresses, foundAt, freshUntil } = known;
      const now = clock();
      if (addresses.length === 0 || now > foundAt + KEPT_MS) return refresh(host, known).promise;
      if (now > freshUntil - AHEAD_MS) refresh(host, known);
      if (now <= freshUntil || !known.pending) return addresses;
      const { since, promise } = known.pending;
      return within(since + LATE_MS - now, promise, addresses);
    },
    /** Looks a name up in the background, so that the first connection need not wait. Does nothing for an address. */
    prepare(host: string): void {
      if (isIP(host.replace(/^\[|\]$/g, "")) === 0) refresh(host, knownOf(host));
    },
  };
}

/** What a promise gives within some milliseconds, or else `fallback`. */
async function within<T>(ms: number, promise: Promise<T>, fallback: T): Promise<T> {
  if (ms <= 0) return fallback;
  const late = Promise.withResolvers<T>();
  const timer = setTimeout(late.resolve, ms, fallback);
  try {
    return await Promise.race([promise.catch(() => fallback), late.promise]);
  } finally {
    clearTimeout(timer);
  }
}
