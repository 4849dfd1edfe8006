import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { type Cap, CapSchema, type CapService } from "../../gen/chorus/admin/v1/caps_pb.js";
import { CapActionSchema, CapFigureSchema, CapPeriodSchema } from "../../gen/chorus/v1/generation_pb.js";
import type { Clock } from "../contract/clock.ts";
import { Failure, invalid } from "../contract/failure.ts";
import { numberOf, readEnum, words } from "../contract/json-names.ts";
import { randomHex } from "../contract/random-hex.ts";
import type { Pool, Query } from "../store/pool.ts";
import { checkOwnCap, checkSetter, type Setter, visibleCaps } from "./own-caps.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText, parseAmount } from "./shared/amount.ts";
import { type Actor, developerOf, record } from "./shared/audit.ts";
import { checkLabel, readExpiry } from "./shared/fields.ts";
import { pageOf, readPageToken, sizeOfPage } from "./shared/page.ts";
import { checkSubject } from "./shared/subject.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

type CapAdmin = Admin<typeof CapService>;

/** Most caps of a workspace that have not ended. Each request of a capped subject reads those of its subjects. */
const MAX_CAPS = 1_000;

/** Largest amount of requests and tokens. */
const MAX_COUNT = 1_000_000_000_000n;

/** A row of `caps`. */
interface CapRow extends Setter {
  id: string;
  subject: string;
  figure: string;
  period: string;
  /** Credits in millionths. */
  amount: bigint;
  action: string;
  ends_at: Date | null;
  created_at: Date;
}

/** A cap in a list. used: as `Cap.used`; null: not read. */
type ListedRow = CapRow & { used: bigint | null };

/**
 * Sets, lists and removes the caps of keys, end users and tags for operators and owners.
 * @param clock milliseconds since 1970; without it, the clocks of the process and the database
 */
export function createCapAdmin(pool: Pool, clock?: Clock): CapAdmin {
  return {
    async setCap({ workspace, cap }, actor) {
      if (!cap) throw invalid("cap", "cap must have a subject, a figure, a period and an amount.");
      const now = (clock ?? Date.now)();
      const row = readCap(cap, now);
      const set = await change(pool, workspace, actor, async (query, id) => {
        await checkKey(query, id, row.subject);
        const developer = developerOf(actor);
        if (developer !== undefined) await checkOwnCap(query, id, developer, row);
        return { row: await write(query, id, row, actor, now), action: "cap.set" };
      });
      return { cap: messageOf(set) };
    },

    listCaps: listCaps(pool, clock),

    async clearCap({ workspace, id: capId }, actor) {
      await change(pool, workspace, actor, async (query, id) => {
        const [row] = await query<CapRow>("delete from caps where workspace_id = $1 and id = $2 returning *", [
          id,
          capId.replaceAll("\0", ""),
        ]);
        if (row) checkSetter(developerOf(actor), row);
        if (row) return { row, action: "cap.clear" };
        const message = "There is no cap with this identifier. Identifiers begin with cap_; list the caps to see them.";
        throw new Failure("unknown_entity", { field: "id", message });
      });
      return {};
    },
  };
}

function listCaps(pool: Pool, clock: Clock | undefined): CapAdmin["listCaps"] {
  return async ({ workspace, pageSize, pageToken, search, withUse }, actor) => {
    const size = sizeOfPage(pageSize);
    checkLabel("search", search);
    const [last] = readPageToken(pageToken, /^(\d{1,9})$/) ?? ["0"];
    const { id } = await findWorkspace(pool.query, actor, workspace);
    const values: unknown[] = [id, last, size + 1, search, clock ? new Date(clock()) : null, withUse];
    const developer = developerOf(actor);
    const own = developer === undefined ? "" : visibleCaps(developer, values);
    // The use of a subject is the same for each of its caps of one figure and period, whichever of them is in force.
    const found = await pool.query<ListedRow>(
      `select c.*, u.used + u.held + u.taken as used
       from (select * from caps where workspace_id = $1 and starts_with(subject, $4) ${own}
             order by subject, figure, period, action, ends_at nulls first offset $2 limit $3) c
       cross join periods_at($1, coalesce($5, clock_timestamp())) p
       left join lateral (select * from cap_use($1, c.subject, p.at) where $6) u
         on c.subject <> template_of(c.subject) and (c.ends_at > p.at) is not false
           and (u.figure, u.period, u.action) = (c.figure, c.period, c.action)
       order by c.subject, c.figure, c.period, c.action, c.ends_at nulls first`,
      values,
    );
    const { rows, nextPageToken } = pageOf(found, size, () => String(Number(last) + size));
    return { caps: rows.map(messageOf), nextPageToken };
  };
}

/** Changes a cap under the lock under which requests of the workspace are admitted, and tells all replicas. */
async function change(
  pool: Pool,
  workspace: string,
  actor: Actor,
  make: (query: Query, id: string) => Promise<{ row: CapRow; action: string }>,
): Promise<CapRow> {
  return pool.tx(async (query) => {
    const { id } = await findWorkspace(query, actor, workspace);
    await query("select from accounts where workspace_id = $1 for update", [id]);
    const { row, action } = await make(query, id);
    await record(query, actor, id, action, detailsOf(row));
    // Alerts on its share are compared although its subjects may not be in use.
    await query("insert into cap_changes (workspace_id, subject) values ($1, $2)", [id, row.subject]);
    // Replicas have reserved headroom by the caps as they were.
    await query("select pg_notify('chorus_cap_call_back', $1)", [`${id} ${row.subject}`]);
    // Replicas keep with each key whether subjects of its requests have caps.
    await query(
      "select pg_notify('chorus_secrets', encode(secret_hash, 'hex')) from api_keys where workspace_id = $1",
      [id],
    );
    return row;
  });
}

type NewCap = Omit<CapRow, "id" | "created_at" | keyof Setter>;

async function write(query: Query, workspaceId: string, row: NewCap, actor: Actor, now: number): Promise<CapRow> {
  const [{ others = 0n } = {}] = await query<{ others: bigint }>(
    `select count(*) as others from caps
     where workspace_id = $1 and (ends_at > $7) is not false
       and (subject, figure, period, action, ends_at is not null) <> ($2, $3, $4, $5, $6::timestamptz is not null)`,
    [workspaceId, row.subject, row.figure, row.period, row.action, row.ends_at, new Date(now)],
  );
  if (others >= MAX_CAPS) throw invalid("cap", `A workspace may have ${MAX_CAPS} caps. Clear one first.`);
  // Without a cap, requests are not counted; so the first cap in force begins with what the tables of usage have.
  await query(
    `with time as (select at from periods_at($1, $3))
     delete from subject_periods s
     where not exists (select from caps_of($1, $2, (select at from time)))
       and s.workspace_id = $1 and (s.subject = $2 or template_of(s.subject) = $2)
       and not exists (select from caps_of($1, s.subject, (select at from time)))`,
    [workspaceId, row.subject, new Date(now)],
  );
  const [written] = await query<CapRow>(
    `insert into caps as c (workspace_id, id, subject, figure, period, amount, action, ends_at, created_at, created_by,
       by_developer)
     values ($1, $2, $3, $4, $5, $6, $7, $8, clock_timestamp(), $9, $10)
     on conflict (workspace_id, subject, figure, period, action, (ends_at is not null)) do update
       set amount = excluded.amount, ends_at = excluded.ends_at,
         created_by = case when $10 then c.created_by else excluded.created_by end,
         by_developer = c.by_developer and $10 returning *`,
    [
      ...[workspaceId, `cap_${randomHex()}`, row.subject, row.figure, row.period, row.amount, row.action, row.ends_at],
      ...[actor.id, developerOf(actor) !== undefined],
    ],
  );
  if (!written) throw new Error("no cap was written");
  // The failure undoes the change.
  checkSetter(developerOf(actor), written);
  return written;
}

/** @throws Failure `invalid_request` with the field */
function readCap(cap: Cap, now: number): NewCap {
  const figure = readEnum("cap.figure", CapFigureSchema, cap.figure);
  const period = readEnum("cap.period", CapPeriodSchema, cap.period);
  const action = readEnum("cap.action", CapActionSchema, cap.action) || "refuse";
  if (figure === "") throw invalid("cap.figure", `cap.figure must be one of ${wordList(CapFigureSchema)}.`);
  if ((figure === "concurrent_requests") !== (period === "")) {
    const periods = `cap.period must be one of ${wordList(CapPeriodSchema)}`;
    throw invalid("cap.period", period === "" ? `${periods}.` : `${periods}, and is not set for concurrent requests.`);
  }
  checkSubject("cap.subject", cap.subject, { each: true });
  return {
    subject: cap.subject,
    figure,
    period,
    amount: figure === "credits" ? parseAmount("cap.amount", cap.amount, 0n) : readCount(cap.amount),
    action,
    ends_at: cap.endsAt ? readExpiry(cap.endsAt, now, "cap.until") : null,
  };
}

const wordList = (desc: Parameters<typeof words>[0]): string => [...words(desc).values()].join(", ");

/** @throws Failure `invalid_request`, unless the key of a subject is one of the workspace */
async function checkKey(query: Query, workspaceId: string, subject: string): Promise<void> {
  if (!subject.startsWith("key:") || subject === "key:*") return;
  const keys = await query("select from api_keys where workspace_id = $1 and id = $2", [workspaceId, subject.slice(4)]);
  if (keys.length === 0) throw invalid("cap.subject", "cap.subject names no key of the workspace. List its keys.");
}

function readCount(text: string): bigint {
  const count = /^\d{1,13}$/.test(text) ? BigInt(text) : MAX_COUNT + 1n;
  if (count > MAX_COUNT) throw invalid("cap.amount", `cap.amount must be a whole number from 0 to ${MAX_COUNT}.`);
  return count;
}

function messageOf(row: CapRow & Partial<ListedRow>): MessageInitShape<typeof CapSchema> {
  const { id, subject, ends_at, created_at, used = null } = row;
  return create(CapSchema, {
    id,
    subject,
    figure: numberOf(CapFigureSchema, row.figure),
    period: numberOf(CapPeriodSchema, row.period),
    amount: amountOf(row),
    action: numberOf(CapActionSchema, row.action),
    ...(ends_at ? { endsAt: timestampFromDate(ends_at) } : {}),
    createdAt: timestampFromDate(created_at),
    ...(used === null ? {} : { used: amountOf({ figure: row.figure, amount: used }) }),
  });
}

function detailsOf(row: CapRow) {
  const { id, subject, figure, period, action, ends_at } = row;
  return { id, subject, figure, period, amount: amountOf(row), action, until: ends_at };
}

function amountOf({ figure, amount }: Pick<CapRow, "figure" | "amount">): string {
  return figure === "credits" ? amountText(amount) : String(amount);
}
