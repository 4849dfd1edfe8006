import { fingerprintOf, versionFingerprint } from "./fingerprint.ts";
import type { ModelEntry, ServedVersion } from "./port/entry.ts";
import { isVersionOf } from "./port/version.ts";

/** Most versions of a model that are told apart, because each is a label of a metric and has sums of its own. */
const MAX_VERSIONS = 8;
/** Stands for all others. */
const OTHERS = "others";

/** Follows which version of each model its vendor serves, and finds the price of what answered. */
export class Served {
  readonly #entries: readonly ModelEntry[];
  readonly #last = new Map<string, ServedVersion>();
  /** Fingerprints of the versions that are told apart, by entry and version. */
  readonly #known = new Map<string, Map<string, string>>();
  readonly #onChange: ((model: string, served: ServedVersion) => void) | undefined;

  /** @param onChange called when another version than before answers, with the name of the model */
  constructor(entries: readonly ModelEntry[], onChange?: (model: string, served: ServedVersion) => void) {
    this.#entries = entries;
    this.#onChange = onChange;
  }

  /** Notes what answered a call of a model. */
  note(entry: ModelEntry, version: string): void {
    if (this.#last.get(entry.name)?.version === version) return;
    const isExpected = isVersionOf(version, entry.version ?? entry.model);
    const served = { version: this.#fingerprintsOf(entry, version).has(version) ? version : OTHERS, isExpected };
    if (this.#last.get(entry.name)?.version === served.version) return;
    this.#last.set(entry.name, served);
    this.#onChange?.(entry.name, served);
  }

  /** The version that answered last; undefined if the vendor has named none. */
  last({ name }: ModelEntry): ServedVersion | undefined {
    return this.#last.get(name);
  }

  /** See `Catalogue.fingerprintOf`. */
  readonly fingerprintOf = (model: string, version: string | undefined): string | undefined => {
    const entry = this.#entries.find(({ name }) => name === model);
    if (!entry || version === undefined) return entry && fingerprintOf(entry);
    return this.#fingerprintsOf(entry, version).get(version) ?? versionFingerprint(fingerprintOf(entry), OTHERS);
  };

  /** Of the versions that are told apart, with this one if it is one of the first. */
  #fingerprintsOf(entry: ModelEntry, version: string): ReadonlyMap<string, string> {
    const known = this.#known.get(entry.name) ?? new Map<string, string>();
    this.#known.set(entry.name, known);
    if (!known.has(version) && known.size < MAX_VERSIONS)
      known.set(version, versionFingerprint(fingerprintOf(entry), version));
    return known;
  }

  /**
   * The price of a version: that of the entry, unless the version is what another entry of the same server names and
   * the entry does not.
   */
  priceOf(entry: ModelEntry, version: string | undefined): ModelEntry["price"] {
    if (version === undefined || isVersionOf(version, entry.version ?? entry.model)) return entry.price;
    const answered = this.#entries.find(
      ({ vendor, baseUrl, model, price }) =>
        price && vendor === entry.vendor && baseUrl === entry.baseUrl && isVersionOf(version, model),
    );
    return answered?.price ?? entry.price;
  }
}
