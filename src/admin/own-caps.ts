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
  // A cap of one key comes before that of each key, so it must not be above it either.
  const bounds = [
    await boundOf(query, workspaceId, developer, { ...cap, subject: `tag:${MEMBER_TAG}=${developer}` }),
    await boundOf(query, workspaceId, developer, cap),
  ].filter((bound) => bound !== undefined);
  let most = cap.amount;
  for (const bound of bounds) if (bound < most) most = bound;
  if (cap.amount <= most) return;
  const amount = cap.figure === "credits" ? amountText(most) : String(most);
  throw invalid("cap.amount", `cap.amount may be at most ${amount}, which is what an owner allows you.`);
}

/** The amount that a subject may use by caps that others have set. */
async function boundOf(
  query: Query,
  workspaceId: string,
  developer: string,
  { subject, figure, period }: Cap,
): Promise<bigint | undefined> {
  const [row] = await query<{ amount: bigint }>(
    `select amount from caps
     where workspace_id = $1 and subject in ($2, template_of($2)) and figure = $3 and period = $4
       and action = 'refuse' and (ends_at > clock_timestamp()) is not false
       and created_by is distinct from $5
     order by subject = $2 desc, ends_at is not null desc limit 1`,
    [workspaceId, subject, figure, period, developer],
  );
  return row?.amount;
}

/** Checks that a developer changes or removes a cap that they set. @throws Failure missing_scope */
export function checkSetter(developer: string | undefined, setter: string | null): void {
  if (developer !== undefined && setter !== developer) throw notOwn();
}

/** SQL condition for the caps that a developer sees: those of their keys, of each key, and their own. */
export function visibleCaps(developer: string, values: unknown[]): string {
  const subjects = `$${values.push([...subjectsOf(developer), "key:*"])}`;
  const person = `$${values.push(developer)}`;
  return `and (subject = any (${subjects}) or subject in
    (select 'key:' || id from api_keys where workspace_id = $1 and person_id = ${person}))`;
}

function subjectsOf(developer: string): string[] {
  return [`tag:${MEMBER_TAG}=${developer}`, `tag:${MEMBER_TAG}=*`];
}

function notOwn(): Failure {
  const message = "Developers change their own caps on their own keys. Others need the role owner in the workspace.";
  return new Failure("missing_scope", { message });
}
