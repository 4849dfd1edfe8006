import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type KeySchema,
  type KeyService,
  type KeyUseSchema,
  ScopeSchema,
} from "../../../gen/chorus/admin/v1/keys_pb.js";
import { numberOf } from "../../contract/json-names.ts";
import type { Tags } from "../../contract/subjects.ts";
import type { Admin } from "../shared/admin.ts";

export type KeyAdmin = Admin<typeof KeyService>;

/** A row of `COLUMNS`: an API key without its secret. */
export interface KeyRow {
  id: string;
  workspaceId: string;
  workspace: string;
  name: string;
  /** The first characters of the secret. */
  prefix: string;
  scopes: string[];
  createdAt: Date;
  /** Null: never. */
  expiresAt: Date | null;
  /** Null: not revoked. */
  revokedAt: Date | null;
  /** Whether this is the key of the console's playground. Such a key has no secret and cannot be changed. */
  console: boolean;
  /** Null: none. */
  fixedTags: Tags | null;
  forbidsTags: boolean;
  /** Whether the text of its requests is never kept. */
  forbidsText: boolean;
  /** Identifier of a person or token; null: not known. */
  createdBy: string | null;
  /** Name of that person. */
  createdByName: string | null;
  /** The member with whom the key ends; null: nobody. */
  holder: { id: string; name: string; email: string } | null;
}

export const COLUMNS = `k.id, k.workspace_id as "workspaceId", w.name as workspace, k.name, k.prefix, k.scopes,
  k.created_at as "createdAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt",
  (k.console or k.playground) as console, k.fixed_tags as "fixedTags", k.forbids_tags as "forbidsTags",
  k.forbids_text as "forbidsText",
  k.created_by as "createdBy",
  (select coalesce(nullif(p.name, ''), p.email) from people p where p.id = k.created_by) as "createdByName",
  (select jsonb_build_object('id', p.id, 'name', p.name, 'email', p.email) from people p where p.id = k.person_id)
    as holder`;

/** @param use recent use of the key */
export function keyMessage(
  { scopes, createdAt, expiresAt, revokedAt, fixedTags, forbidsTags, createdBy, createdByName, holder, ...key }: KeyRow,
  use?: MessageInitShape<typeof KeyUseSchema>,
): MessageInitShape<typeof KeySchema> {
  return {
    ...key,
    scopes: scopes.map((scope) => numberOf(ScopeSchema, scope)),
    createdAt: timestampFromDate(createdAt),
    ...(expiresAt ? { expiresAt: timestampFromDate(expiresAt) } : {}),
    ...(revokedAt ? { revokedAt: timestampFromDate(revokedAt) } : {}),
    createdBy: createdBy ?? "",
    createdByName: createdByName ?? "",
    ...(holder ? { holder } : {}),
    ...(use ? { use } : {}),
    ...(fixedTags || forbidsTags ? { tags: { fixed: fixedTags ?? {}, forbidsOthers: forbidsTags } } : {}),
  };
}
