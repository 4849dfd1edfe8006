import { sentenceOf } from "./sentence.ts";

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
