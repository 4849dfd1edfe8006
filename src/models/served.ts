import type { ModelEntry } from "./port/entry.ts";
import { isVersionOf } from "./port/version.ts";

/** The version that answered last, as the vendor names it. */
export interface ServedVersion {
  readonly version: string;
  /** Whether it is what the catalogue expects. */
  readonly isExpected: boolean;
}

/** Most versions of a model that are told apart, because each is a label of a metric. */
const MAX_VERSIONS = 8;

/** Follows which version of each model its vendor serves, and finds the price of what answered. */
export class Served {
  readonly #entries: readonly ModelEntry[];
  readonly #last = new Map<string, ServedVersion>();
  readonly #known = new Map<string, Set<string>>();
  readonly #onChange: ((model: string, served: ServedVersion) => void) | undefined;

  /** @param onChange called when another version than before answers, with the name of the model */
  constructor(entries: readonly ModelEntry[], onChange?: (model: string, served: ServedVersion) => void) {
    this.#entries = entries;
    this.#onChange = onChange;
  }

  /** Notes what answered a call of a model. */
  note(entry: ModelEntry, version: string): void {
    if (this.#last.get(entry.name)?.version === version) return;
    const known = this.#known.get(entry.name) ?? new Set();
    this.#known.set(entry.name, known);
    if (known.size < MAX_VERSIONS) known.add(version);
    const isExpected = isVersionOf(version, entry.version ?? entry.model);
    const served = { version: known.has(version) ? version : "others", isExpected };
    if (this.#last.get(entry.name)?.version === served.version) return;
    this.#last.set(entry.name, served);
    this.#onChange?.(entry.name, served);
  }

  /** The version that answered last; undefined if the vendor has named none. */
  last({ name }: ModelEntry): ServedVersion | undefined {
    return this.#last.get(name);
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
