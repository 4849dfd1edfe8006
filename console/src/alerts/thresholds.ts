import type { MessageInitShape } from "@bufbuild/protobuf";
import { AlertFormat, type Alerts, type AlertsSchema } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { percentOf } from "./event.ts";

/** The texts of the form. An empty threshold raises no alert. */
export interface Draft {
  /** Address of a webhook, or e-mail addresses with commas between them. */
  readonly target: string;
  /** How events are written for a webhook. */
  readonly format: "event" | "slack";
  /** Credits. */
  readonly creditBelow: string;
  /** Percentage. */
  readonly spendShare: string;
  /** Percentage. */
  readonly failureShare: string;
  /** Percentage. */
  readonly capShare: string;
  /** Limits such as `user:credits_per_day`, separated by commas or spaces; empty for all. */
  readonly capLimits: string;
}

/** Whether a text stands for e-mail addresses: `ann@example.com, bob@example.com`, also behind `mailto:`. */
export function isMail(target: string): boolean {
  return /^\s*(mailto:|[^\s@/:]+@)/.test(target);
}

/** The text of the form for an address of the service. */
function textOf(url: string): string {
  return isMail(url) ? url.replace("mailto:", "").replaceAll(",", ", ") : url;
}

/** The texts for the alerts in force, or empty ones. */
export function draftOf(alerts: Alerts | undefined): Draft {
  const text = (share: number | undefined) => (share === undefined ? "" : percentOf(share));
  return {
    target: textOf(alerts?.webhookUrl ?? ""),
    format: alerts?.format === AlertFormat.SLACK ? "slack" : "event",
    creditBelow: alerts?.creditBelow ?? "",
    spendShare: text(alerts?.spendShare),
    failureShare: text(alerts?.failureShare),
    capShare: text(alerts?.capShare),
    capLimits: alerts?.capLimits.join(", ") ?? "",
  };
}

/** The alerts for the texts of the form, which match the patterns of its controls. */
export function alertsOf(draft: Draft): MessageInitShape<typeof AlertsSchema> {
  const { target, format, creditBelow, spendShare, failureShare, capShare, capLimits } = draft;
  return {
    webhookUrl: isMail(target) ? `mailto:${target.replace(/\s|^\s*mailto:/g, "")}` : target.trim(),
    format: format === "slack" ? AlertFormat.SLACK : AlertFormat.EVENT,
    creditBelow: creditBelow.trim(),
    ...(spendShare.trim() ? { spendShare: Number(spendShare) / 100 } : {}),
    ...(failureShare.trim() ? { failureShare: Number(failureShare) / 100 } : {}),
    ...(capShare.trim() ? { capShare: Number(capShare) / 100, capLimits: limitsOf(capLimits) } : {}),
  };
}

function limitsOf(text: string): string[] {
  return text.split(/[\s,]+/).filter((limit) => limit !== "");
}
