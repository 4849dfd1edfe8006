import { type DescMessage, type DescMethod, type DescService, getOption } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { ActivityService } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { AlertService } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { CapService } from "../../../gen/chorus/admin/v1/caps_pb.js";
import { CreditService } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { KeyService } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { MemberService } from "../../../gen/chorus/admin/v1/members_pb.js";
import { OperationsService } from "../../../gen/chorus/admin/v1/operations_pb.js";
import { UsageService } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { WorkspaceService } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { type ChatService, CreateChatCompletionRequestSchema } from "../../../gen/chorus/v1/chat_pb.js";
import { GenerateRequestSchema, GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import {
  CreateMessageRequestSchema,
  type MessagesService,
  MessageTokensSchema,
} from "../../../gen/chorus/v1/messages_pb.js";
import { Access, access, MemberRoleSchema, roles } from "../../../gen/chorus/v1/options_pb.js";
import { CreateResponseRequestSchema, type ResponsesService } from "../../../gen/chorus/v1/responses_pb.js";
import type { Scope } from "../../admission/authenticate.ts";
import { wordOf } from "../../contract/json-names.ts";
import { ROLES, type Role } from "../../contract/roles.ts";
import { BODIES } from "../../overload/bounds.ts";
import type { RequestEnd } from "../../telemetry/telemetry.ts";

/** Services of operators and owners. */
export const ADMIN_SERVICES = [
  WorkspaceService,
  CreditService,
  KeyService,
  CapService,
  UsageService,
  ActivityService,
  OperationsService,
  AlertService,
  MemberService,
] as const;

/** Services of the internal listener whose methods state who may call them. */
export const CHORUS_SERVICES = [GenerationService, ...ADMIN_SERVICES] as const;

/** What a request must prove: an API key with a scope, or a token with at least a role. */
type Proof = { readonly scope: Scope } | { readonly role: "owner" | "operator" };

/** The same, and the roles of persons who may call the method for their workspace. None: only operators may. */
export type Requirement = Proof & { readonly roles: readonly Role[] };

/** What every door knows of a method, from its description in the contract. */
export interface Method {
  readonly desc: DescMethod;
  /** Name with the service, such as `chorus.v1.GenerationService/Generate`. */
  readonly name: string;
  readonly requirement: Requirement;
  /** Name in logs and metrics. */
  readonly label: RequestEnd["method"];
  /** Whether it changes nothing, so that Connect's GET requests are allowed. */
  readonly isReadOnly: boolean;
  /** Whether it takes a prompt, whose body may be large, and waits for a turn of its workspace. */
  readonly takesPrompt: boolean;
  /** Whether its requests cost credit and count towards limits. */
  readonly isCharged: boolean;
  /** Whether a request with an `Idempotency-Key` may repeat an earlier one. */
  readonly isRepeatable: boolean;
  /** Largest request, in bytes. */
  readonly maxBytes: number;
}

const PROOFS: Readonly<Record<Access, Proof | undefined>> = {
  [Access.UNSPECIFIED]: undefined,
  [Access.GENERATE]: { scope: "generate" },
  [Access.METRICS]: { scope: "metrics" },
  [Access.OWNER]: { role: "owner" },
  [Access.OPERATOR]: { role: "operator" },
};

type CallerMethods = typeof GenerationService.method &
  typeof ChatService.method &
  typeof ResponsesService.method &
  typeof MessagesService.method;

const LABELS: Readonly<Record<keyof CallerMethods, RequestEnd["method"]>> = {
  generate: "generate",
  streamGenerate: "stream_generate",
  recordOutcome: "outcome",
  getGeneration: "generation",
  quotas: "quotas",
  metrics: "metrics",
  createChatCompletion: "chat_completions",
  streamChatCompletion: "chat_completions",
  createResponse: "responses",
  streamResponse: "responses",
  listModels: "models",
  getModel: "models",
  createMessage: "messages",
  streamMessage: "messages",
  countMessageTokens: "count_tokens",
  listMessageModels: "models",
  getMessageModel: "models",
};

const RECORD_OUTCOME: DescMethod = GenerationService.method.recordOutcome;

/** Requests with a prompt. */
const PROMPTS: ReadonlySet<DescMessage> = new Set([
  GenerateRequestSchema,
  CreateChatCompletionRequestSchema,
  CreateResponseRequestSchema,
  CreateMessageRequestSchema,
]);

/**
 * Reads the methods of services from the contract. Call it once at start-up.
 * @throws TypeError for a method without the option `chorus.v1.access`
 */
export function methodsOf(services: readonly DescService[]): Method[] {
  return services.flatMap(({ methods }) => methods.map(readMethod));
}

function readMethod(desc: DescMethod): Method {
  const proof = PROOFS[getOption(desc, access)];
  if (!proof) throw new TypeError(`${desc} does not state who may call it. Add the option chorus.v1.access.`);
  const isReadOnly = desc.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
  const takesPrompt = PROMPTS.has(desc.input);
  const isCharged = takesPrompt && desc.output !== MessageTokensSchema;
  return {
    desc,
    name: `${desc.parent.typeName}/${desc.name}`,
    requirement: { ...proof, roles: rolesOf(desc) },
    label: "scope" in proof ? LABELS[desc.localName as keyof typeof LABELS] : "admin",
    isReadOnly,
    takesPrompt,
    isCharged,
    isRepeatable: isCharged && desc.methodKind === "unary",
    maxBytes: takesPrompt ? BODIES.max : desc === RECORD_OUTCOME ? BODIES.maxOutcome : BODIES.maxSmall,
  };
}

function rolesOf(desc: DescMethod): readonly Role[] {
  if (getOption(desc, access) === Access.OPERATOR) return [];
  const named = getOption(desc, roles).map((role) => wordOf(MemberRoleSchema, role));
  return ROLES.filter((role) => role === "owner" || named.includes(role));
}
