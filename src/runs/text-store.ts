import { timeOfGeneration } from "../contract/generation-id.ts";
import type { Pool } from "../store/pool.ts";
import { packText } from "./text.ts";
import type { TextKeys, TextPlace } from "./text-keys.ts";

/** The text of a run that waits for the database. */
export interface WaitingText extends TextPlace {
  /** Of the API key. */
  readonly keyId: string;
  /** See `writeText`. */
  readonly text: Uint8Array;
}

/** Writes the text of runs, encrypted. */
export class TextStore {
  readonly #pool: Pick<Pool, "query">;
  readonly #keys: TextKeys;
  readonly #perDay: number;

  /** @param perDay most bytes of one workspace on one day (UTC), encrypted */
  constructor(pool: Pick<Pool, "query">, keys: TextKeys, perDay: number) {
    this.#pool = pool;
    this.#keys = keys;
    this.#perDay = perDay;
  }

  /** @returns how many were kept; the workspaces of the others have too much text, or may keep none any more */
  async write(texts: readonly WaitingText[]): Promise<number> {
    const rows: object[] = [];
    // One after the other, because all threads together would delay the compression of answers.
    for (const text of texts) rows.push(await this.#row(text));
    const [row] = await this.#pool.query<{ kept: bigint }>("select keep_run_texts($1, $2) as kept", [
      JSON.stringify(rows),
      this.#perDay,
    ]);
    return Number(row?.kept ?? 0);
  }

  async #row({ workspaceId, id, keyId, text }: WaitingText): Promise<object> {
    const { keyName, sealed } = this.#keys.seal({ workspaceId, id }, await packText(text));
    return {
      ...{ workspace_id: workspaceId, key_id: keyId, began_at: new Date(timeOfGeneration(id) ?? 0), id },
      ...{ key_name: keyName, sealed: sealed.toString("base64") },
    };
  }
}
