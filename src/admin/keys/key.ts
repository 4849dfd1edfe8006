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
}

export const COLUMNS = `k.id, k.workspace_id as "workspaceId", w.name as workspace, k.name, k.prefix, k.scopes,
  k.created_at as "createdAt", k.expires_at as "expiresAt", k.revoked_at as "revokedAt", k.console,
  k.fixed_tags as "fixedTags", k.forbids_tags as "forbidsTags"`;

/** @param use recent use of the key */
export function keyMessage(
  { scopes, createdAt, expiresAt, revokedAt, fixedTags, forbidsTags, ...key }: KeyRow,
  use?: MessageInitShape<typeof KeyUseSchema>,
): MessageInitShape<typeof KeySchema> {
  return {
    ...key,
    scopes: scopes.map((scope) => numberOf(ScopeSchema, scope)),
    createdAt: timestampFromDate(createdAt),
    ...(expiresAt ? { expiresAt: timestampFromDate(expiresAt) } : {}),
    ...(revokedAt ? { revokedAt: timestampFromDate(revokedAt) } : {}),
    ...(use ? { use } : {}),
    ...(fixedTags || forbidsTags ? { tags: { fixed: fixedTags ?? {}, forbidsOthers: forbidsTags } } : {}),
  };
}
