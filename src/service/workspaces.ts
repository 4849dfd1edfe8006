import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CreateOwnerTokenResponseSchema,
  CreateWorkspaceResponseSchema,
  GetNextTierResponseSchema,
  GetWorkspaceResponseSchema,
  LimitNameSchema,
  type LimitOverride,
  type LimitSchema,
  ListWorkspacesResponseSchema,
  SetLimitsResponseSchema,
  SetTierResponseSchema,
  type WorkspaceKind,
  WorkspaceKindSchema,
  type WorkspaceSchema,
  type WorkspaceService,
} from "../../gen/chorus/admin/v1/workspaces_pb.js";
import { amountText } from "../accounts/amount.ts";
import type { Owners } from "../accounts/owners.ts";
import type { LimitChange, Workspace, Workspaces } from "../accounts/workspaces.ts";
import { numberOf } from "../json-names.ts";
import type { Admin } from "./admin.ts";
import { spendLimitMessages } from "./credits.ts";
import { readEnum } from "./read-field.ts";

export type WorkspaceAdmin = Admin<typeof WorkspaceService>;

/** Workspaces as operators see them, and each as its owner does. */
export function createWorkspaceAdmin(workspaces: Workspaces, owners: Owners): WorkspaceAdmin {
  return {
    async createWorkspace({ name, kind }, actor) {
      const made = await workspaces.create(actor, { name, kind: kindOf(kind) });
      return create(CreateWorkspaceResponseSchema, { workspace: workspaceMessage(made) });
    },
    async listWorkspaces({ pageSize, pageToken }) {
      const page = await workspaces.list({ pageSize, pageToken });
      return create(ListWorkspacesResponseSchema, {
        workspaces: page.workspaces.map(workspaceMessage),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
    async getWorkspace({ workspace }, actor) {
      const found = await workspaces.get(actor, workspace);
      return create(GetWorkspaceResponseSchema, { workspace: workspaceMessage(found) });
    },
    async getNextTier({ workspace }, actor) {
      const next = await workspaces.nextTier(actor, workspace);
      if (!next) return create(GetNextTierResponseSchema);
      const { name, purchased, limits, missing } = next;
      const tier = { name, purchased: amountText(purchased), limits: limitMessages(limits) };
      return create(GetNextTierResponseSchema, { tier, missing: amountText(missing) });
    },
    async setTier({ workspace, tier }, actor) {
      const changed = await workspaces.setTier(actor, workspace, tier);
      return create(SetTierResponseSchema, { workspace: workspaceMessage(changed) });
    },
    async setLimits({ workspace, overrides }, actor) {
      const changed = await workspaces.setLimits(actor, workspace, overrides.map(changeOf));
      return create(SetLimitsResponseSchema, { workspace: workspaceMessage(changed) });
    },
    async createOwnerToken({ workspace, expiresAt }, actor) {
      const made = await owners.createToken(actor, {
        workspace,
        ...(expiresAt ? { expiresAt: timestampDate(expiresAt) } : {}),
      });
      return create(CreateOwnerTokenResponseSchema, {
        token: made.token,
        id: made.id,
        workspace: workspaceMessage(await workspaces.get(actor, made.workspace)),
        ...(expiresAt ? { expiresAt } : {}),
      });
    },
  };
}

function kindOf(kind: WorkspaceKind): Workspace["kind"] {
  return readEnum("kind", WorkspaceKindSchema, kind) === "organization" ? "organization" : "personal";
}

function changeOf({ name, change }: LimitOverride, i: number): LimitChange {
  return { name: readEnum(`overrides[${i}].name`, LimitNameSchema, name), to: newLimit(change) };
}

function newLimit(change: LimitOverride["change"]): LimitChange["to"] {
  switch (change.case) {
    case "value":
      return change.value;
    case "unlimited":
      return "unlimited";
    case "reset":
      return "default";
    case undefined:
      return undefined;
  }
}

function workspaceMessage(of: Workspace): MessageInitShape<typeof WorkspaceSchema> {
  return {
    id: of.id,
    name: of.name,
    kind: numberOf(WorkspaceKindSchema, of.kind),
    createdAt: timestampFromDate(of.createdAt),
    tier: of.tier,
    tierOverridden: of.tierOverridden,
    limits: limitMessages(of.limits),
    overriddenLimits: of.overriddenLimits.map((name) => numberOf(LimitNameSchema, name)),
    granted: amountText(of.granted),
    purchased: amountText(of.purchased),
    held: amountText(of.held),
    purchasedTotal: amountText(of.purchasedTotal),
    running: of.running,
    spendLimits: spendLimitMessages(of.spendLimits),
  };
}

function limitMessages(limits: Record<string, number>): MessageInitShape<typeof LimitSchema>[] {
  return Object.entries(limits).map(([name, limit]) => ({
    name: numberOf(LimitNameSchema, name),
    value: BigInt(limit),
  }));
}
