import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type CreateKeyRequest,
  type CreateKeyResponse,
  CreateKeyResponseSchema,
  type KeySchema,
  type ListKeysRequest,
  type ListKeysResponse,
  ListKeysResponseSchema,
  type RevokeKeyRequest,
  type RevokeKeyResponse,
  RevokeKeyResponseSchema,
} from "../../gen/chorus/admin/v1/keys_pb.js";
import type { KeyRecord, Keys } from "../admission/keys.ts";
import { invalid } from "../failure.ts";

/** Largest page of keys, and the page when none is asked for. */
const MAX_PAGE = 1_000;
const DEFAULT_PAGE = 100;

/** Keys as operators see them; the rules on names, scopes and expiry are in admission. */
export interface KeyAdmin {
  createKey(request: CreateKeyRequest): Promise<CreateKeyResponse>;
  listKeys(request: ListKeysRequest): Promise<ListKeysResponse>;
  revokeKey(request: RevokeKeyRequest): Promise<RevokeKeyResponse>;
}

export function createKeyAdmin(keys: Keys): KeyAdmin {
  return {
    async createKey({ workspace, name, scopes, expiresAt }) {
      const created = await keys.create({
        workspace,
        name,
        scopes,
        ...(expiresAt ? { expiresAt: timestampDate(expiresAt) } : {}),
      });
      return create(CreateKeyResponseSchema, { key: keyMessage(created.key), secret: created.secret });
    },
    async listKeys({ workspace, pageSize, pageToken }) {
      if (pageSize < 0 || pageSize > MAX_PAGE)
        throw invalid("page_size", `page_size must be a whole number from 1 to ${MAX_PAGE}.`);
      const page = await keys.list({
        pageSize: pageSize || DEFAULT_PAGE,
        ...(workspace === "" ? {} : { workspace }),
        ...(pageToken === "" ? {} : { pageToken }),
      });
      return create(ListKeysResponseSchema, {
        keys: page.keys.map(keyMessage),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
    async revokeKey({ id }) {
      return create(RevokeKeyResponseSchema, { key: keyMessage(await keys.revoke(id)) });
    },
  };
}

function keyMessage(key: KeyRecord): MessageInitShape<typeof KeySchema> {
  return {
    id: key.id,
    workspace: key.workspace,
    name: key.name,
    prefix: key.prefix,
    scopes: [...key.scopes],
    createdAt: timestampFromDate(key.createdAt),
    ...(key.expiresAt ? { expiresAt: timestampFromDate(key.expiresAt) } : {}),
    ...(key.revokedAt ? { revokedAt: timestampFromDate(key.revokedAt) } : {}),
  };
}
