import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  CreateOwnerTokenResponseSchema,
  CreateSignInLinkResponseSchema,
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
} from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { numberOf } from "../../json-names.ts";
import { amountText } from "../amount.ts";
import { spendLimitMessages } from "../credits-service.ts";
import { readEnum } from "../read-field.ts";
import type { Admin } from "../service.ts";
import type { Owners } from "../sign-in/tokens.ts";
import type { LimitChange } from "./limits.ts";
import type { SignInLinks } from "./sign-in-link.ts";
import type { Workspace, Workspaces } from "./workspaces.ts";

export type WorkspaceAdmin = Admin<typeof WorkspaceService>;

/** Manages workspaces for operators, and shows owners their workspace. */
export function createWorkspaceAdmin(workspaces: Workspaces, owners: Owners, links: SignInLinks): WorkspaceAdmin {
  return {
    async createWorkspace({ name, kind }, actor) {
      const created = await workspaces.create(actor, { name, kind: kindOf(kind) });
      return create(CreateWorkspaceResponseSchema, { workspace: workspaceMessage(created) });
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
      const created = await owners.createToken(actor, {
        workspace,
        ...(expiresAt ? { expiresAt: timestampDate(expiresAt) } : {}),
      });
      return create(CreateOwnerTokenResponseSchema, {
        token: created.token,
        id: created.id,
        workspace: workspaceMessage(await workspaces.get(actor, created.workspace)),
        ...(expiresAt ? { expiresAt } : {}),
      });
    },
    async createSignInLink({ workspace }, actor) {
      const { path, expiresAt } = await links.create(actor, workspace);
      return create(CreateSignInLinkResponseSchema, { path, expiresAt: timestampFromDate(expiresAt) });
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

/** A workspace with its balance and limits. */
export function workspaceMessage(workspace: Workspace): MessageInitShape<typeof WorkspaceSchema> {
  return {
    id: workspace.id,
    name: workspace.name,
    kind: numberOf(WorkspaceKindSchema, workspace.kind),
    createdAt: timestampFromDate(workspace.createdAt),
    tier: workspace.tier,
    tierOverridden: workspace.tierOverridden,
    limits: limitMessages(workspace.limits),
    overriddenLimits: workspace.overriddenLimits.map((name) => numberOf(LimitNameSchema, name)),
    granted: amountText(workspace.granted),
    purchased: amountText(workspace.purchased),
    held: amountText(workspace.held),
    purchasedTotal: amountText(workspace.purchasedTotal),
    running: workspace.running,
    spendLimits: spendLimitMessages(workspace.spendLimits),
  };
}

function limitMessages(limits: Record<string, number>): MessageInitShape<typeof LimitSchema>[] {
  return Object.entries(limits).map(([name, limit]) => ({
    name: numberOf(LimitNameSchema, name),
    value: BigInt(limit),
  }));
}
