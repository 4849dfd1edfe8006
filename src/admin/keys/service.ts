import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CreateKeyResponseSchema,
  type KeySchema,
  type KeyService,
  type KeyUseSchema,
  ListKeysResponseSchema,
  RevokeKeyResponseSchema,
  ScopeSchema,
  UpdateKeyResponseSchema,
} from "../../../gen/chorus/admin/v1/keys_pb.js";
import { numberOf } from "../../json-names.ts";
import { amountText } from "../amount.ts";
import { readEnum } from "../read-field.ts";
import type { Admin } from "../service.ts";
import type { ApiKey, Keys } from "./keys.ts";
import type { KeyUse } from "./use.ts";

export type KeyAdmin = Admin<typeof KeyService>;

/** Manages keys for operators and owners. The rules on names, scopes and expiry are in keys.ts. */
export function createKeyAdmin(keys: Keys): KeyAdmin {
  return {
    async createKey({ workspace, name, scopes, expiresAt }, actor) {
      const created = await keys.create(actor, {
        workspace,
        name,
        scopes: scopes.map((scope, i) => readEnum(`scopes[${i}]`, ScopeSchema, scope)),
        ...(expiresAt ? { expiresAt: timestampDate(expiresAt) } : {}),
      });
      return create(CreateKeyResponseSchema, { key: keyMessage(created), secret: created.secret });
    },
    async updateKey({ id, name, expiry }, actor) {
      const expiresAt = expiry.case === "expiresAt" ? timestampDate(expiry.value) : expiry.case && null;
      const changed = await keys.update(actor, {
        id,
        ...(name === undefined ? {} : { name }),
        ...(expiresAt === undefined ? {} : { expiresAt }),
      });
      return create(UpdateKeyResponseSchema, { key: keyMessage(changed) });
    },
    async listKeys({ withUse, ...request }, actor) {
      const page = await keys.list(actor, request);
      const uses = withUse ? await keys.use(page.keys) : undefined;
      return create(ListKeysResponseSchema, {
        keys: page.keys.map((key) => keyMessage(key, uses?.get(key.id))),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
    async revokeKey({ id }, actor) {
      return create(RevokeKeyResponseSchema, { key: keyMessage(await keys.revoke(actor, id)) });
    },
  };
}

function keyMessage(key: ApiKey, use?: KeyUse): MessageInitShape<typeof KeySchema> {
  return {
    id: key.id,
    workspace: key.workspace,
    name: key.name,
    prefix: key.prefix,
    scopes: key.scopes.map((scope) => numberOf(ScopeSchema, scope)),
    createdAt: timestampFromDate(key.createdAt),
    ...(key.expiresAt ? { expiresAt: timestampFromDate(key.expiresAt) } : {}),
    ...(key.revokedAt ? { revokedAt: timestampFromDate(key.revokedAt) } : {}),
    console: key.console,
    ...(use ? { use: useMessage(use) } : {}),
  };
}

function useMessage({ lastUsedAt, from, charged, ...figures }: KeyUse): MessageInitShape<typeof KeyUseSchema> {
  return {
    ...figures,
    ...(lastUsedAt ? { lastUsedAt: timestampFromDate(lastUsedAt) } : {}),
    startTime: timestampFromDate(from),
    credits: amountText(charged),
  };
}
