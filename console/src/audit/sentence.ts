import { words } from "../format.ts";

/** What was done, and the member of the details that says to what; without it, the identifier does. */
const SENTENCES: Readonly<Record<string, readonly [text: string, member?: string]>> = {
  "alerts.clear": ["Cleared the alerts"],
  "alerts.set": ["Changed the alerts"],
  "cap.clear": ["Cleared the cap of", "subject"],
  "cap.set": ["Set a cap of", "subject"],
  "credit.adjustment": ["Took granted credit back"],
  "credit.grant": ["Granted credit"],
  "credit.purchase": ["Booked a purchase"],
  "invitation.accept": ["Accepted an invitation as", "role"],
  "invitation.create": ["Invited a member as", "role"],
  "invitation.withdraw": ["Withdrew an invitation"],
  "key.create": ["Created the key", "name"],
  "key.revoke": ["Revoked the key", "name"],
  "key.take_over": ["Took over the key", "id"],
  "key.update": ["Changed the key", "name"],
  "limits.set": ["Changed limits"],
  "member.remove": ["Removed the member", "person"],
  "member.set_role": ["Changed the role of", "person"],
  "models.disable": ["Disabled the model", "model"],
  "models.enable": ["Enabled the model", "model"],
  "models.reset_learned": ["Forgot what was learned"],
  "models.test": ["Tested the model", "model"],
  "operator_token.replace": ["Replaced the operator token"],
  "owner_token.create": ["Created an owner token"],
  "run_text.delete": ["Deleted texts of requests"],
  "run_text.read": ["Read the text of the request", "id"],
  "run_text.set": ["Set how long texts of requests are kept"],
  "session.end": ["Signed out"],
  "session.start": ["Signed in"],
  "sign_in_link.create": ["Created a sign-in link"],
  "settings.refuse": ["Refused changed settings"],
  "settings.reload": ["Took over changed settings"],
  "spend_limit.clear": ["Removed the spend limit for a", "period"],
  "spend_limit.set": ["Set the spend limit for a", "period"],
  "tier.set": ["Set the tier"],
  "workspace.create": ["Created the workspace", "name"],
};

/** The actions that have a sentence. */
export const ACTIONS: readonly string[] = Object.keys(SENTENCES);

/**
 * An entry of the audit log as a sentence and the other details.
 * @param action such as `key.create`; one that is not known is written in its own words
 * @param details the members of the details, as text; names in them are untrusted
 */
export function sentenceOf(action: string, details: readonly [name: string, value: string][]) {
  const [text, member] = SENTENCES[action] ?? [words(action)];
  if (member === undefined) return { text, of: "", others: details };
  const [name, of] = filled(details, member) ?? filled(details, "id") ?? [];
  // Without its last word, a sentence would be cut off.
  if (of === undefined) return { text: words(action), of: "", others: details };
  return { text, of, others: details.filter((detail) => detail[0] !== name) };
}

function filled(details: readonly [name: string, value: string][], member: string) {
  return details.find(([name, value]) => name === member && value !== "none");
}
