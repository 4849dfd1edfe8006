import { Failure, invalid } from "../contract/failure.ts";
import { MEMBER_TAG } from "../contract/subjects.ts";
import type { Query } from "../store/pool.ts";
import { amountText } from "./shared/amount.ts";

/** What is compared of two caps. Credits are in millionths. */
interface Cap {
  readonly subject: string;
  readonly figure: string;
  readonly period: string;
  readonly amount: bigint;
}

/**
 * Checks a cap that a developer sets: it is on a key of their own, and at most what the developer may use in all.
 * @throws Failure `missing_scope` or `invalid_request`
 */
export async function checkOwnCap(query: Query, workspaceId: string, developer: string, cap: Cap): Promise<void> {
  const own = await query("select from api_keys where workspace_id = $1 and 'key:' || id = $2 and person_id = $3", [
    workspaceId,
    cap.subject,
    developer,
  ]);
  if (own.length === 0) throw notOwn();
  // A cap above these has no effect.
  const bounds = [
    await boundOf(query, workspaceId, { ...cap, subject: `tag:${MEMBER_TAG}=${developer}` }),
    await boundOf(query, workspaceId, cap),
  ].filter((bound) => bound !== undefined);
  let most = cap.amount;
  for (const bound of bounds) if (bound < most) most = bound;
  if (cap.amount <= most) return;
  const amount = cap.figure === "credits" ? amountText(most) : String(most);
  throw invalid("cap.amount", `cap.amount may be at most ${amount}, which is what an owner allows you.`);
}

/** The amount that a subject may use by caps that owners have set. */
async function boundOf(
  query: Query,
  workspaceId: string,
  { subject, figure, period }: Cap,
): Promise<bigint | undefined> {
  const [row] = await query<{ amount: bigint }>(
    `select amount from caps
     where workspace_id = $1 and subject in ($2, template_of($2)) and figure = $3 and period = $4
       and action = 'refuse' and (ends_at > clock_timestamp()) is not false
       and not by_developer
     order by subject = $2 desc, ends_at is not null desc limit 1`,
    [workspaceId, subject, figure, period],
  );
  return row?.amount;
}

/** Who set a cap. */
export interface Setter {
  /** Identifier of a person or token; null: not known. */
  readonly created_by: string | null;
  /** Whether that person was a developer then. */
  readonly by_developer: boolean;
}

/** Checks that a developer changes or removes a cap that they set in this role. @throws Failure missing_scope */
export function checkSetter(developer: string | undefined, { created_by, by_developer }: Setter): void {
  if (developer !== undefined && !(by_developer && created_by === developer)) throw notOwn();
}

/** SQL condition for the caps that a developer sees: those of their keys, of each key, and their own. */
export function visibleCaps(developer: string, values: unknown[]): string {
  const subjects = `$${values.push([`tag:${MEMBER_TAG}=${developer}`, `tag:${MEMBER_TAG}=*`, "key:*"])}`;
  const person = `$${values.push(developer)}`;
  return `and (subject = any (${subjects}) or subject in
    (select 'key:' || id from api_keys where workspace_id = $1 and person_id = ${person}))`;
}

function notOwn(): Failure {
  const message = "Developers change their own caps on their own keys. Others need the role owner in the workspace.";
  return new Failure("missing_scope", { message });
}
