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
import type { ApiKey, Keys } from "../admission/keys.ts";

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
      return create(CreateKeyResponseSchema, { key: keyMessage(created), secret: created.secret });
    },
    async listKeys({ workspace, pageSize, pageToken }) {
      const page = await keys.list({
        pageSize,
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

function keyMessage(key: ApiKey): MessageInitShape<typeof KeySchema> {
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
