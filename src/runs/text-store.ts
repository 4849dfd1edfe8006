import { timeOfGeneration } from "../contract/generation-id.ts";
import type { Pool } from "../store/pool.ts";
import { packText } from "./text.ts";
import type { TextKeys, TextPlace } from "./text-keys.ts";

/** The text of a run. */
export interface KeptText {
  /** Of the API key. */
  readonly keyId: string;
  /** See `writeText`. */
  readonly text: Uint8Array;
}

export type WaitingText = TextPlace & KeptText;

/** @returns how many were kept; the workspaces of the others have too much text, or may keep none any more */
export type StoreTexts = (texts: readonly WaitingText[]) => Promise<number>;

/**
 * Creates the function that writes the text of runs, encrypted.
 * @param perDay most bytes of one workspace on one day (UTC), encrypted
 */
export function createTextStore(pool: Pick<Pool, "query">, keys: TextKeys, perDay: number): StoreTexts {
  return async (texts) => {
    const rows: object[] = [];
    // One after the other, because all threads together would delay the compression of answers.
    for (const text of texts) rows.push(await rowOf(keys, text));
    const values = [JSON.stringify(rows), perDay];
    const [row] = await pool.query<{ kept: bigint }>("select keep_run_texts($1, $2) as kept", values);
    return Number(row?.kept ?? 0);
  };
}

async function rowOf(keys: TextKeys, { workspaceId, id, keyId, text }: WaitingText): Promise<object> {
  const { keyName, sealed } = keys.seal({ workspaceId, id }, await packText(text));
  return {
    ...{ workspace_id: workspaceId, key_id: keyId, began_at: new Date(timeOfGeneration(id) ?? 0), id },
    ...{ key_name: keyName, sealed: sealed.toString("base64") },
  };
}
