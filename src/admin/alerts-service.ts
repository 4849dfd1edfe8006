import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  AlertDeliveryStateSchema,
  type AlertService,
  type AlertsSchema,
  ClearAlertsResponseSchema,
  GetAlertsResponseSchema,
  ListAlertDeliveriesResponseSchema,
  SetAlertsResponseSchema,
  TestAlertsResponseSchema,
} from "../../gen/chorus/admin/v1/alerts_pb.js";
import { invalid } from "../failure.ts";
import { numberOf } from "../json-names.ts";
import type { AlertRules, Alerts } from "./alerts.ts";
import type { Admin } from "./service.ts";

export type AlertAdmin = Admin<typeof AlertService>;

/** Sets alerts and lists their deliveries, for owners, and for operators over all workspaces. */
export function createAlertAdmin(rules: AlertRules): AlertAdmin {
  return {
    async setAlerts({ workspace, alerts, newSecret }, actor) {
      if (!alerts) throw invalid("alerts", "alerts must have a webhook and at least one threshold.");
      const set = await rules.set(actor, { workspace, alerts, newSecret });
      return create(SetAlertsResponseSchema, { alerts: message(set.alerts), secret: set.secret ?? "" });
    },
    async getAlerts({ workspace }, actor) {
      const alerts = await rules.get(actor, workspace);
      return create(GetAlertsResponseSchema, alerts ? { alerts: message(alerts) } : {});
    },
    async clearAlerts({ workspace }, actor) {
      await rules.clear(actor, workspace);
      return create(ClearAlertsResponseSchema);
    },
    async testAlerts({ workspace }, actor) {
      return create(TestAlertsResponseSchema, { deliveryId: await rules.test(actor, workspace) });
    },
    async listAlertDeliveries(request, actor) {
      const page = await rules.deliveries(actor, request);
      return create(ListAlertDeliveriesResponseSchema, {
        deliveries: page.deliveries.map(({ id, createdAt, event, state, attempts, nextAt, responseStatus, error }) => ({
          id,
          createdAt: timestampFromDate(createdAt),
          event,
          state: numberOf(AlertDeliveryStateSchema, state),
          attempts,
          ...(state === "waiting" ? { nextAttemptAt: timestampFromDate(nextAt) } : {}),
          responseStatus: responseStatus ?? 0,
          error: error ?? "",
        })),
        nextPageToken: page.nextPageToken ?? "",
      });
    },
  };
}

function message({ webhookUrl, creditBelow, spendShare, failureShare }: Alerts): MessageInitShape<typeof AlertsSchema> {
  return {
    webhookUrl,
    creditBelow: creditBelow ?? "",
    ...(spendShare === undefined ? {} : { spendShare }),
    ...(failureShare === undefined ? {} : { failureShare }),
  };
}
