/** Additions after which the entries move, besides two for each entry. */
const LEAST = 32;

/**
 * A Map whose entries come and go, such as those of running requests.
 *
 * V8 links the table that a Map has outgrown to its next one. When such a table has reached the old generation, all
 * that follow survive until V8 collects that generation, with the keys and values that they had, and with all that
 * these refer to. So the entries move to a new Map from time to time, to which no table is linked
 * (docs/decisions/speed.md).
 */
export class TransientMap<K, V> {
  #map = new Map<K, V>();
  #added = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: K): V | undefined {
    return this.#map.get(key);
  }

  has(key: K): boolean {
    return this.#map.has(key);
  }

  set(key: K, value: V): void {
    const before = this.#map.size;
    this.#map.set(key, value);
    if (this.#map.size === before) return;
    if (++this.#added > LEAST + 2 * this.#map.size) this.#move();
  }

  delete(key: K): boolean {
    return this.#map.delete(key);
  }

  /** In the order of addition. What is added or deleted before the end of the loop may be missed. */
  keys(): MapIterator<K> {
    return this.#map.keys();
  }

  /** As `keys`. */
  values(): MapIterator<V> {
    return this.#map.values();
  }

  #move(): void {
    this.#map = new Map(this.#map);
    this.#added = 0;
  }
}

/** A Set whose members come and go; see `TransientMap`. */
export class TransientSet<T> {
  readonly #map = new TransientMap<T, true>();

  get size(): number {
    return this.#map.size;
  }

  has(member: T): boolean {
    return this.#map.has(member);
  }

  add(member: T): void {
    this.#map.set(member, true);
  }

  delete(member: T): boolean {
    return this.#map.delete(member);
  }

  /** As `TransientMap.keys`. */
  [Symbol.iterator](): MapIterator<T> {
    return this.#map.keys();
  }
}
