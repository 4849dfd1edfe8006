import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type AlertDeliverySchema,
  AlertDeliveryState,
  type AlertsSchema,
  type SetAlertsResponseSchema,
} from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { ago, HOUR, later } from "./clock.ts";

export const alerts: MessageInitShape<typeof AlertsSchema> = {
  webhookUrl: "https://hooks.example.com/chorus",
  creditBelow: "250",
  spendShare: 0.8,
};

export const set: MessageInitShape<typeof SetAlertsResponseSchema> = {
  alerts,
  secret: "whsec_Wm3fXk0q8tN5yPz2RmB7xLh4c1Vd9sJg",
};

const { WAITING, DELIVERED, FAILED } = AlertDeliveryState;

const event = (type: string, alert?: string, value?: number, threshold?: number, workspace = "acme") =>
  JSON.stringify({ type: `alert.${type}`, data: alert ? { alert, workspace, value, threshold } : {} });

/** Deliveries of every state, newest first. */
export const deliveries: MessageInitShape<typeof AlertDeliverySchema>[] = [
  { event: event("test"), state: WAITING },
  {
    event: event("raised", "failure_share", 0.2317, 0.2, "globex"),
    state: WAITING,
    attempts: 3,
    nextAttemptAt: later(71_000),
    responseStatus: 503,
    error: "The webhook answered 503.",
  },
  { event: event("raised", "spend_share", 0.8012, 0.8), state: DELIVERED, attempts: 2, responseStatus: 200 },
  { event: event("cleared", "credit_left", 1249.5, 250), state: DELIVERED, attempts: 1, responseStatus: 204 },
  {
    event: event("raised", "credit_left", 249.118, 250),
    state: FAILED,
    attempts: 8,
    error: "The webhook did not answer within 10 seconds.",
  },
].map((delivery, i) => ({ ...delivery, id: `evt_${i}`, createdAt: ago(i * 5 * HOUR + 20_000) }));
