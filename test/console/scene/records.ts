import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  ActorKind,
  AnswerShape,
  type AuditEntrySchema,
  type GenerationSchema,
  Outcome,
} from "../../../gen/chorus/admin/v1/activity_pb.js";
import { type CreateKeyResponseSchema, type KeySchema, Scope } from "../../../gen/chorus/admin/v1/keys_pb.js";
import { Effort, FinishReason } from "../../../gen/chorus/v1/generation_pb.js";
import { ago, DAY, HOUR, later, noise } from "./clock.ts";

const BOTH = [Scope.GENERATE, Scope.METRICS];

const use = (lastUsed: number, requests: bigint, failedRequests: bigint, credits: string) => ({
  lastUsedAt: ago(lastUsed),
  requests,
  failedRequests,
  credits,
});

const key = (id: number, name: string, prefix: string, age: number, scopes = BOTH) => ({
  id: `key_${id}`,
  workspace: "acme",
  name,
  prefix,
  scopes,
  createdAt: ago(age * DAY),
});

/** Keys of every state. */
export const keys: MessageInitShape<typeof KeySchema>[] = [
  { ...key(1, "Checkout assistant", "ck_9fK2", 84), use: use(64_000, 401_204n, 811n, "1087.263") },
  {
    ...key(2, "support-bot (production)", "ck_Qm41", 61, [Scope.GENERATE]),
    use: use(3 * HOUR, 98_112n, 12n, "265.88"),
  },
  { ...key(3, "Grafana", "ck_b07Z", 40, [Scope.METRICS]), expiresAt: later(21 * DAY), use: use(DAY, 0n, 0n, "0") },
  { ...key(4, "", "ck_Xy88", 12), use: { requests: 0n, failedRequests: 0n, credits: "0" } },
  { ...key(5, "Hackathon", "ck_77aa", 90), expiresAt: ago(3 * DAY), use: use(9 * DAY, 1204n, 4n, "3.26284") },
  { ...key(6, "Old importer", "ck_p0Lk", 200), revokedAt: ago(2 * DAY), use: use(5 * DAY, 88n, 88n, "0") },
  { ...key(7, "console", "", 84), console: true, use: use(8 * 60_000, 412n, 3n, "1.11652") },
];

export const newKey: MessageInitShape<typeof CreateKeyResponseSchema> = {
  key: key(8, "Invoices", "ck_w3Jd", 0),
  secret: "ck_w3JdV0kq8tN5yPz2RmB7xLh4",
};

const LEVELS = [Effort.LOW, Effort.LOW, Effort.MEDIUM, Effort.HIGH];

/** Requests of every outcome, newest first. */
export const generations: MessageInitShape<typeof GenerationSchema>[] = Array.from({ length: 24 }, (_, i) => {
  const failed = i === 3 || i === 11;
  const outcome = failed ? Outcome.FAILED : i === 7 ? Outcome.CALLER_GONE : i === 15 ? Outcome.CUT_SHORT : Outcome.OK;
  const output = failed ? 0 : Math.round(40 + 900 * noise(i));
  return {
    id: `gen_${Math.floor(noise(i + 1) * 1e12).toString(36)}`,
    requestId: `req_${Math.floor(noise(i + 2) * 1e15).toString(36)}`,
    at: ago(i * 41_000 + 9000),
    keyId: `key_${(i % 2) + 1}`,
    keyName: i % 2 === 0 ? "Checkout assistant" : "support-bot (production)",
    streamed: i % 3 === 0,
    shape: i % 5 === 2 ? AnswerShape.JSON_SCHEMA : i % 7 === 4 ? AnswerShape.EXTRACT : AnswerShape.TEXT,
    effort: Effort.AUTO,
    level: LEVELS[i % 4] ?? Effort.LOW,
    inputTokens: BigInt(Math.round(120 + 4000 * noise(i + 9))),
    cachedTokens: i % 4 === 1 ? 96n : 0n,
    outputTokens: BigInt(output),
    credits: outcome === Outcome.OK || outcome === Outcome.CALLER_GONE ? (output * 0.00001 + 0.0021).toFixed(6) : "0",
    latencyMs: Math.round(300 + 6000 * noise(i + 4)),
    outcome,
    finishReason: outcome === Outcome.OK ? FinishReason.STOP : FinishReason.UNSPECIFIED,
    ...(i === 11 ? {} : { modelCalls: [1, 1, 3, 6][i % 4] ?? 1 }),
    failureCode: failed ? "upstream_failed" : "",
    ...({ 1: { score: 1 }, 4: { score: 0 }, 6: { score: 0.7 } }[i] ?? {}),
  };
});

const CHANGES: [ActorKind, string, string, object][] = [
  [ActorKind.OWNER, "tok_4k2m", "key.create", { id: "key_8", name: "Invoices", scopes: ["generate", "metrics"] }],
  [ActorKind.OWNER, "tok_4k2m", "spend_limit.set", { period: "day", amount: "60" }],
  [ActorKind.OPERATOR, "tok_9a01", "credit.purchase", { reference: "INV-2026-0318", amount: "1000" }],
  [ActorKind.OWNER, "tok_4k2m", "key.revoke", { id: "key_6", name: "Old importer" }],
  [ActorKind.OPERATOR, "tok_9a01", "limits.set", { concurrent_requests: { from: 16, to: 32 } }],
  [ActorKind.SERVICE, "bootstrap", "workspace.create", { name: "acme", kind: "organization" }],
];

/** Changes by every kind of actor, newest first. */
export const audit: MessageInitShape<typeof AuditEntrySchema>[] = CHANGES.map(
  ([actorKind, actorId, action, details], i) => ({
    id: `${100 - i}`,
    at: ago(i * 7 * HOUR + 40_000),
    actorKind,
    actorId,
    action,
    details: JSON.stringify(details),
    workspace: "acme",
  }),
);
