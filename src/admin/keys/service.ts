import type { Authenticator } from "../../admission/authenticate.ts";
import type { Pool } from "../../store/pool.ts";
import { revokeKey, updateKey } from "./change.ts";
import { createKey } from "./create.ts";
import type { KeyAdmin } from "./key.ts";
import { listKeys } from "./list.ts";

/**
 * Manages API keys for operators, and those of the own workspace for owners.
 * @param cache forgets changed keys
 * @param clock returns milliseconds since 1970
 */
export function createKeyAdmin(pool: Pool, cache: Pick<Authenticator, "forget">, clock: () => number): KeyAdmin {
  return {
    createKey: createKey(pool, clock),
    updateKey: updateKey(pool, cache, clock),
    listKeys: listKeys(pool, clock),
    revokeKey: revokeKey(pool, cache, clock),
  };
}
