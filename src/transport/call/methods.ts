import { type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import type { ChatService } from "../../../gen/chorus/v1/chat_pb.js";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { Access, access } from "../../../gen/chorus/v1/options_pb.js";
import type { Scope } from "../../admission/authenticate.ts";
import type { RequestEnd } from "../../telemetry/telemetry.ts";

/** Services of operators and owners. */
const ADMIN_SERVICES = [
  WorkspaceService,
  CreditService,
  KeyService,
  UsageService,
  ActivityService,
  OperationsService,
  AlertService,
] as const;

/** Services of the internal listener whose methods state who may call them. */
export const CHORUS_SERVICES = [GenerationService, ...ADMIN_SERVICES] as const;

/** What a request must prove: an API key with a scope, or a token with at least a role. */
export type Requirement = { readonly scope: Scope } | { readonly role: "owner" | "operator" };

/** What both listeners know of a method. */
export interface MethodRule {
  readonly requirement: Requirement;
  /** Name of the method in logs and metrics. */
  readonly label: RequestEnd["method"];
}

const REQUIREMENTS: Readonly<Record<Access, Requirement | undefined>> = {
  [Access.UNSPECIFIED]: undefined,
  [Access.GENERATE]: { scope: "generate" },
  [Access.METRICS]: { scope: "metrics" },
  [Access.OWNER]: { role: "owner" },
  [Access.OPERATOR]: { role: "operator" },
};

type CallerMethods = typeof GenerationService.method & typeof ChatService.method;

const LABELS: Readonly<Record<keyof CallerMethods, RequestEnd["method"]>> = {
  generate: "generate",
  streamGenerate: "stream_generate",
  quotas: "quotas",
  metrics: "metrics",
  createChatCompletion: "chat_completions",
  streamChatCompletion: "chat_completions",
  listModels: "models",
  getModel: "models",
};

/**
 * Reads the rules of all methods of the given services. Call it once at start-up.
 * @throws TypeError for a method without the option `chorus.v1.access`
 */
export function methodRules(services: readonly DescService[]): ReadonlyMap<DescMethod, MethodRule> {
  return new Map(services.flatMap(({ methods }) => methods.map((method) => [method, ruleOf(method)])));
}

function ruleOf(method: DescMethod): MethodRule {
  const requirement = REQUIREMENTS[getOption(method, access)];
  if (!requirement) throw new TypeError(`${method} does not state who may call it. Add the option chorus.v1.access.`);
  const label = "scope" in requirement ? LABELS[method.localName as keyof typeof LABELS] : "admin";
  return { requirement, label };
}
