import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  type ActivityService,
  ListAuditResponseSchema,
  ListGenerationsResponseSchema,
} from "../../gen/chorus/admin/v1/activity_pb.js";
import type { Activity } from "../accounts/activity.ts";
import { amountText } from "../accounts/amount.ts";
import type { Admin } from "./admin.ts";
import { readTimestamp } from "./timestamp.ts";

export type ActivityAdmin = Admin<typeof ActivityService>;

/** What happened in a workspace, for operators and its owner. */
export function createActivityAdmin(activity: Activity): ActivityAdmin {
  return {
    async listGenerations({ startTime, endTime, ...request }, actor) {
      const period = { from: readTimestamp("from", startTime), to: readTimestamp("to", endTime) };
      const page = await activity.generations(actor, { ...request, ...period });
      return create(ListGenerationsResponseSchema, {
        generations: page.generations.map(({ at, charged, finishReason, ...record }) => ({
          ...record,
          at: timestampFromDate(at),
          credits: amountText(charged),
          finishReason: finishReason ?? "",
        })),
        nextPageToken: page.nextPageToken ?? "",
        ...(page.searchedTo ? { searchedTo: timestampFromDate(page.searchedTo) } : {}),
      });
    },
    async listAudit(request, actor) {
      const page = await activity.audit(actor, request);
      return create(ListAuditResponseSchema, {
        entries: page.entries.map(({ id, at, ...entry }) => ({ ...entry, id: `${id}`, at: timestampFromDate(at) })),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
  };
}
