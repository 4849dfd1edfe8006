import { randomBytes } from "node:crypto";
import { type KeyTags, ScopeSchema } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { type Authenticator, SCOPES, type Scope } from "../../admission/authenticate.ts";
import { createSecret, hashSecret, prefixOf } from "../../admission/secret.ts";
import type { Clock } from "../../contract/clock.ts";
import { Failure, invalid } from "../../contract/failure.ts";
import { readEnum } from "../../contract/json-names.ts";
import { checkTags, isEmpty, MEMBER_TAG, type Tags } from "../../contract/subjects.ts";
import type { Pool, Query } from "../../store/pool.ts";
import { type Actor, confinedTo, developerOf, record } from "../shared/audit.ts";
import { checkLabel, readExpiry } from "../shared/fields.ts";
import { holdRole } from "../shared/rights.ts";
import { findWorkspace } from "../workspaces/workspace.ts";
import { COLUMNS, type KeyAdmin, type KeyRow, keyMessage } from "./key.ts";
import { listKeys } from "./list.ts";

/**
 * Manages API keys for operators, those of the own workspace for owners, and their own for developers.
 * @param cache forgets changed keys. Other replicas apply a change within a second
 */
export function createKeyAdmin(pool: Pool, cache: Pick<Authenticator, "forget">, clock: Clock): KeyAdmin {
  const changeKey = async (id: string, actor: Actor, make: (query: Query, key: KeyRow) => Promise<KeyRow>) => {
    const { hash, key } = await pool.tx((query) => changeRow(query, id, actor, make));
    cache.forget(hash);
    return { key: keyMessage(key) };
  };

  return {
    listKeys: listKeys(pool, clock),

    async createKey({ workspace, name, scopes: numbers, expiresAt, tags, forbidsText }, actor) {
      checkLabel("name", name);
      const developer = developerOf(actor);
      const scopes = readScopes(numbers, developer !== undefined);
      const now = clock();
      const expiry = readExpiry(expiresAt, now);
      const { fixedTags, forbidsTags } = readTags(tags, developer);
      const secret = createSecret("ck_");
      const key = await pool.tx(async (query) => {
        await holdRole(query, actor);
        const { id: workspaceId } = await findWorkspace(query, actor, workspace);
        const id = `key_${randomBytes(12).toString("hex")}`;
        const row = await insertKey(query, [
          ...[workspaceId, id, hashSecret(secret), prefixOf(secret), name, scopes, new Date(now), expiry],
          ...[fixedTags, forbidsTags, actor.id, actor.kind === "member" ? actor.id : null, forbidsText],
        ]);
        const more = { ...(tags ? tagDetails(row) : {}), ...textDetails(forbidsText || undefined) };
        await record(query, actor, workspaceId, "key.create", { id, name, scopes, expires_at: expiry, ...more });
        return row;
      });
      return { key: keyMessage(key), secret };
    },

    async updateKey({ id, name, expiry, tags, forbidsText }, actor) {
      if (name === undefined && expiry.case === undefined && !tags && forbidsText === undefined)
        throw invalid("name", "Set at least one of name, expires_at, never_expires, tags and forbids_text.");
      if (forbidsText === false && developerOf(actor) !== undefined)
        throw new Failure("missing_scope", { message: "Allowing the text of a key to be kept needs the role owner." });
      if (name !== undefined) checkLabel("name", name);
      const expiresAt = expiry.case === "expiresAt" ? readExpiry(expiry.value, clock()) : null;
      return changeKey(id, actor, async (query, key) => {
        const after = {
          name: name ?? key.name,
          expiresAt: expiry.case === undefined ? key.expiresAt : expiresAt,
          ...(tags
            ? readTags(tags, key.fixedTags?.[MEMBER_TAG])
            : { fixedTags: key.fixedTags, forbidsTags: key.forbidsTags }),
          forbidsText: forbidsText ?? key.forbidsText,
        };
        await writeKey(query, id, after);
        const details = { id, name: after.name, expires_at: after.expiresAt, ...(tags ? tagDetails(after) : {}) };
        await record(query, actor, key.workspaceId, "key.update", { ...details, ...textDetails(forbidsText) });
        return { ...key, ...after };
      });
    },

    /** Revoking a key again changes nothing. */
    async revokeKey({ id }, actor) {
      return changeKey(id, actor, async (query, key) => {
        if (key.revokedAt) return key;
        const revokedAt = new Date(clock());
        await query("update api_keys set revoked_at = $2 where id = $1", [id, revokedAt]);
        await record(query, actor, key.workspaceId, "key.revoke", { id });
        return { ...key, revokedAt };
      });
    },

    takeOverKey: ({ id }, actor) => changeKey(id, actor, (query, key) => takeOver(query, key, actor)),
  };
}

type Changeable = Pick<KeyRow, "name" | "expiresAt" | "fixedTags" | "forbidsTags" | "forbidsText">;

async function writeKey(query: Query, id: string, key: Changeable): Promise<void> {
  await query(
    `update api_keys set name = $2, expires_at = $3, fixed_tags = $4, forbids_tags = $5, forbids_text = $6
     where id = $1`,
    [id, key.name, key.expiresAt, key.fixedTags, key.forbidsTags, key.forbidsText],
  );
}

/** The caller becomes the holder; nobody, when a token calls. The key no longer counts under a developer's caps. */
async function takeOver(query: Query, key: KeyRow, actor: Actor): Promise<KeyRow> {
  const { id } = key;
  if (key.revokedAt) throw invalid("id", "This key is revoked, so nobody can take it over. Create another one.");
  const { [MEMBER_TAG]: _, ...tags } = key.fixedTags ?? {};
  const person = actor.kind === "member" ? actor.id : null;
  await query("update api_keys set person_id = $2, fixed_tags = $3 where id = $1", [
    ...[id, person, isEmpty(tags) ? null : tags],
  ]);
  await record(query, actor, key.workspaceId, "key.take_over", { id, from: key.holder?.id ?? "" });
  return readKey(query, id);
}

/** @param values of the columns, in their order */
async function insertKey(query: Query, values: readonly unknown[]): Promise<KeyRow> {
  const [row] = await query<KeyRow>(
    `with k as (
       insert into api_keys (workspace_id, id, secret_hash, prefix, name, scopes, created_at, expires_at, fixed_tags,
         forbids_tags, created_by, person_id, forbids_text)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) returning *)
     select ${COLUMNS} from k join workspaces w on w.id = k.workspace_id`,
    values,
  );
  if (!row) throw new Failure("unknown_entity", { field: "workspace" });
  return row;
}

/** @throws Failure `invalid_request`, or `missing_scope` for a scope that shows a developer the use of others */
function readScopes(numbers: readonly number[], isDeveloper: boolean): Scope[] {
  if (numbers.length === 0) return isDeveloper ? ["generate"] : [...SCOPES];
  const scopes = [...new Set(numbers.map(readScope))];
  if (!isDeveloper || !scopes.includes("metrics")) return scopes;
  const message = "The scope metrics shows the use of all keys. Creating a key with it needs the role owner.";
  throw new Failure("missing_scope", { message });
}

function readScope(number: number, i: number): Scope {
  const word = readEnum(`scopes[${i}]`, ScopeSchema, number);
  const scope = SCOPES.find((known) => known === word);
  if (!scope) throw invalid(`scopes[${i}]`, `A scope is one of ${SCOPES.join(", ")}.`);
  return scope;
}

/** @param developer whose requests the tag of members counts; undefined: the key has no such tag */
function readTags(tags: KeyTags | undefined, developer: string | undefined): Pick<KeyRow, "fixedTags" | "forbidsTags"> {
  const { fixed = {}, forbidsOthers = false } = tags ?? {};
  // A client may send back what it has read.
  const { [MEMBER_TAG]: sent, ...named } = fixed;
  checkTags("tags.fixed", sent === developer ? named : fixed);
  const all: Tags = developer === undefined ? named : { ...named, [MEMBER_TAG]: developer };
  return { fixedTags: isEmpty(all) ? null : all, forbidsTags: forbidsOthers };
}

function tagDetails({ fixedTags, forbidsTags }: Pick<KeyRow, "fixedTags" | "forbidsTags">) {
  return { tags: fixedTags, forbids_other_tags: forbidsTags };
}

/** @param forbidsText as it was sent */
function textDetails(forbidsText: boolean | undefined) {
  return forbidsText === undefined ? {} : { forbids_text: forbidsText };
}

async function readKey(query: Query, id: string): Promise<KeyRow> {
  const [key] = await query<KeyRow>(
    `select ${COLUMNS} from api_keys k join workspaces w on w.id = k.workspace_id where k.id = $1`,
    [id],
  );
  if (!key) throw new Failure("unknown_entity", { field: "id" });
  return key;
}

/**
 * @param make changes the key, which is locked until the transaction ends, and returns it as it is afterwards
 * @throws Failure `unknown_entity`, `missing_scope`, or `invalid_request` for the console's key
 */
async function changeRow(
  query: Query,
  id: string,
  actor: Actor,
  make: (query: Query, key: KeyRow) => Promise<KeyRow>,
): Promise<{ hash: Buffer; key: KeyRow }> {
  await holdRole(query, actor);
  const [row] = await query<KeyRow & { hash: Buffer }>(
    `select ${COLUMNS}, k.secret_hash as hash from api_keys k join workspaces w on w.id = k.workspace_id
     where k.id = $1 and ($2::text is null or k.workspace_id = $2) and ($3::text is null or k.person_id = $3)
     for update of k`,
    [id.replaceAll("\0", ""), confinedTo(actor) ?? null, developerOf(actor) ?? null],
  );
  if (!row) {
    // The message does not repeat the identifier, because it may be a secret that was pasted by mistake.
    throw new Failure("unknown_entity", {
      field: "id",
      message: "There is no key with this identifier. Identifiers begin with key_; list the keys to see them.",
    });
  }
  if (row.console) throw invalid("id", "This is the console's own key, which cannot be changed.");
  const { hash, ...key } = row;
  return { hash, key: await make(query, key) };
}
