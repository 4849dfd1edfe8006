import type { Query } from "../../store/pool.ts";
import { type Actor, confinedTo, developerOf } from "./audit.ts";

/**
 * The keys whose use an actor may see.
 * @param keyId the only key that the actor asks for; empty: all
 * @returns identifiers; undefined: all of the workspace
 */
export async function visibleKeys(query: Query, actor: Actor, keyId: string): Promise<string[] | undefined> {
  const wanted = keyId === "" ? undefined : [keyId.replaceAll("\0", "")];
  const developer = developerOf(actor);
  if (developer === undefined) return wanted;
  const own = await query<{ id: string }>("select id from api_keys where workspace_id = $1 and person_id = $2", [
    confinedTo(actor),
    developer,
  ]);
  const ids = own.map(({ id }) => id);
  return wanted ? ids.filter((id) => wanted.includes(id)) : ids;
}
