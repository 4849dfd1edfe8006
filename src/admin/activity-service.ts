import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type ActivityService,
  ActorKindSchema,
  AnswerShapeSchema,
  type GenerationSchema,
  ListAuditResponseSchema,
  type ListGenerationsRequest,
  ListGenerationsResponseSchema,
  Outcome,
  OutcomeSchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema, FinishReasonSchema } from "../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../json-names.ts";
import type { Activity, GenerationRecord } from "./activity.ts";
import { amountText } from "./amount.ts";
import { readEnum, readTimestamp } from "./read-field.ts";
import type { Admin } from "./service.ts";

export type ActivityAdmin = Admin<typeof ActivityService>;

/** Lists the requests and the audit log of a workspace, for operators and its owner. */
export function createActivityAdmin(activity: Activity): ActivityAdmin {
  return {
    async listGenerations({ workspace, pageSize, pageToken, startTime, endTime, keyId, ended, level }, actor) {
      const page = await activity.generations(actor, {
        workspace,
        pageSize,
        pageToken,
        from: readTimestamp("from", startTime),
        to: readTimestamp("to", endTime),
        keyId,
        outcome: outcomeFilter(ended),
        level: readEnum("level", EffortSchema, level),
      });
      return create(ListGenerationsResponseSchema, {
        generations: page.generations.map(generationMessage),
        nextPageToken: page.nextPageToken ?? "",
        ...(page.searchedTo ? { searchedTo: timestampFromDate(page.searchedTo) } : {}),
      });
    },
    async listAudit(request, actor) {
      const page = await activity.audit(actor, request);
      return create(ListAuditResponseSchema, {
        entries: page.entries.map(({ id, at, actorKind, ...entry }) => ({
          ...entry,
          id: `${id}`,
          at: timestampFromDate(at),
          actorKind: numberOf(ActorKindSchema, actorKind),
        })),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
  };
}

/** The word that the list is filtered by: an outcome or a failure code; empty for every request. */
function outcomeFilter(ended: ListGenerationsRequest["ended"]): string {
  switch (ended.case) {
    case "outcome":
      return readEnum("outcome", OutcomeSchema, ended.value);
    case "failureCode":
      return ended.value;
    case undefined:
      return "";
  }
}

function generationMessage(record: GenerationRecord): MessageInitShape<typeof GenerationSchema> {
  const { at, charged, shape, effort, level, outcome, finishReason, modelCalls, ...rest } = record;
  // The store keeps the code of a failure in place of an outcome.
  const known = numberOf(OutcomeSchema, outcome);
  return {
    ...rest,
    at: timestampFromDate(at),
    shape: numberOf(AnswerShapeSchema, shape),
    effort: numberOf(EffortSchema, effort),
    level: numberOf(EffortSchema, level),
    credits: amountText(charged),
    outcome: known || Outcome.FAILED,
    failureCode: known ? "" : outcome,
    finishReason: numberOf(FinishReasonSchema, finishReason ?? ""),
    ...(modelCalls === null ? {} : { modelCalls }),
  };
}
