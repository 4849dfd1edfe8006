/** An event as the functions of the database write it. Other members are ignored. */
interface AlertEvent {
  readonly type: string;
  readonly data: {
    readonly alert?: string;
    readonly workspace?: string;
    readonly value?: number;
    readonly threshold?: number;
    readonly period?: string;
    readonly subject?: string;
    readonly limit?: string;
    readonly used?: number;
    readonly amount?: number;
  };
}

/**
 * Says an event in a sentence.
 * @param event the JSON text of an event. Names of workspaces, users and tags in it are text that others chose, and so
 *   they are in the sentence
 */
export function sentenceOf(event: string): string {
  const { type, data }: AlertEvent = JSON.parse(event);
  const { alert, workspace = "", value = 0, threshold = 0 } = data;
  if (type === "alert.test") return "Chorus: this is a test of your alerts.";
  const state = type === "alert.cleared" ? "no longer raised. " : "";
  const of = `Chorus, workspace ${workspace}: ${state}`;
  if (alert === "credit_left") return `${of}${value} credits are left; the alert is at ${threshold}.`;
  const [share, bound] = [percent(value), `the alert is at ${percent(threshold)}.`];
  if (alert === "spend_share") return `${of}${share} of ${spendLimit(data.period)} is used; ${bound}`;
  if (alert === "failure_share") return `${of}${share} of the requests of the last ten minutes failed; ${bound}`;
  if (alert === "cap_share") {
    const { subject = "", limit = "", used = 0, amount = 0 } = data;
    return `${of}${subject} has used ${share} of ${limit} (${used} of ${amount}); ${bound}`;
  }
  return `${of}${alert ?? type}`;
}

/** @param period undefined in events of earlier versions */
function spendLimit(period: string | undefined): string {
  return period === undefined ? "a spend limit" : `the spend limit of the ${period}`;
}

function percent(share: number): string {
  return `${Number((share * 100).toFixed(2))} %`;
}

/**
 * Writes an event as a message for incoming webhooks of Slack, and of what accepts the same format.
 * @param event the JSON text of an event
 * @returns the JSON text of an object with `text`
 */
export function slackMessage(event: string): string {
  return JSON.stringify({ text: escaped(sentenceOf(event)) });
}

/**
 * Names of workspaces, users and tags must not become links or mentions of a channel. Mattermost and Discord read a
 * mention from plain text, such as `@everyone`, but not with a character without width in it.
 */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("@", "@\u200b");
}
