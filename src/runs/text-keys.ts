import { createHash } from "node:crypto";
import { seal, unseal } from "../contract/seal.ts";

/** Where a text belongs. Text that was moved to another place in the database cannot be opened. */
export interface TextPlace {
  readonly workspaceId: string;
  /** Of the generation. */
  readonly id: string;
}

/** An encrypted text, with the name of its key. */
export interface SealedText {
  readonly keyName: string;
  readonly sealed: Buffer;
}

/** The operator's keys for the text of runs. */
export class TextKeys {
  readonly #keys: ReadonlyMap<string, Uint8Array>;

  /** @param keys of 32 bytes; the first encrypts, all decrypt. Empty: no text is kept */
  constructor(keys: readonly Uint8Array[]) {
    this.#keys = new Map(keys.map((key) => [nameOf(key), key]));
  }

  get areSet(): boolean {
    return this.#keys.size > 0;
  }

  seal(place: TextPlace, data: Uint8Array): SealedText {
    const [first] = this.#keys;
    if (!first) throw new Error("there is no key for the text of runs");
    const [keyName, key] = first;
    return { keyName, sealed: seal(key, data, contextOf(place)) };
  }

  /** @returns undefined when the key is not set. @throws Error when the text was changed, or belongs elsewhere */
  open(place: TextPlace, { keyName, sealed }: SealedText): Buffer | undefined {
    const key = this.#keys.get(keyName);
    return key && unseal(key, sealed, contextOf(place));
  }
}

/** A name that does not reveal the key. */
function nameOf(key: Uint8Array): string {
  return createHash("sha256").update("chorus run text").update(key).digest("hex").slice(0, 8);
}

function contextOf({ workspaceId, id }: TextPlace): string {
  return `${workspaceId} ${id}`;
}
