import { randomBytes } from "node:crypto";
import { Failure, invalid } from "../failure.ts";
import { randomHex } from "../random-hex.ts";
import { orOverloaded, type Pool, type Query } from "../store/pool.ts";
import { amountText, parseAmount } from "./amount.ts";
import { type Actor, record, WHOLE_SERVICE } from "./audit.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage, timeOf } from "./page.ts";
import { findWorkspace } from "./workspaces/workspaces.ts";

/** A webhook and its thresholds. Absent thresholds raise no alert. */
export interface Alerts {
  webhookUrl: string;
  /** Credits, as a decimal number. */
  creditBelow?: string | undefined;
  /** Above 0, to 1. */
  spendShare?: number | undefined;
  /** Above 0, to 1. */
  failureShare?: number | undefined;
}

/** An event for a webhook. */
export interface AlertDelivery {
  id: string;
  createdAt: Date;
  /** The JSON text that is sent. */
  event: string;
  state: "waiting" | "delivered" | "failed";
  attempts: number;
  /** Time of the next attempt of one that waits. */
  nextAt: Date;
  responseStatus: number | null;
  error: string | null;
}

/**
 * Alerts of a workspace. For an operator, an empty `workspace` stands for the alerts of the operators, which watch
 * every workspace. Every method throws Failure `invalid_request`, `unknown_entity`, or `overloaded` when the database
 * is unavailable.
 */
export interface AlertRules {
  /** @returns the alerts, and the secret if it is new */
  set(
    actor: Actor,
    request: { workspace: string; alerts: Alerts; newSecret: boolean },
  ): Promise<{ alerts: Alerts; secret: string | undefined }>;
  get(actor: Actor, workspace: string): Promise<Alerts | undefined>;
  clear(actor: Actor, workspace: string): Promise<void>;
  /** Adds an event of the type `alert.test`. @returns its identifier */
  test(actor: Actor, workspace: string): Promise<string>;
  /** Lists deliveries in pages, newest first. */
  deliveries(
    actor: Actor,
    request: { workspace: string; pageSize?: number; pageToken?: string },
  ): Promise<{ deliveries: AlertDelivery[]; nextPageToken: string | undefined }>;
}

interface RuleRow {
  url: string;
  credit_below_micro: bigint | null;
  spend_share: number | null;
  failure_share: number | null;
}

/** @param checkUrl throws Failure `invalid_request` for an address that a webhook may not have */
export function createAlertRules(pool: Pool, checkUrl: (field: string, url: string) => void): AlertRules {
  return {
    async set(actor, request) {
      checkUrl("alerts.webhook_url", request.alerts.webhookUrl);
      return setRule(pool, actor, request);
    },
    async get(actor, workspace) {
      const id = await orOverloaded(ruleOf(pool.query, actor, workspace));
      const [row] = await orOverloaded(pool.query<RuleRow>("select * from alert_rules where workspace_id = $1", [id]));
      return row && alertsOf(row);
    },
    clear: (actor, workspace) =>
      orOverloaded(
        pool.tx(async (query) => {
          const id = await ruleOf(query, actor, workspace);
          await query("delete from alert_rules where workspace_id = $1", [id]);
          await query("delete from alert_states where workspace_id = $1", [id]);
          await query("delete from alert_deliveries where workspace_id = $1 and state = 'waiting'", [id]);
          await record(query, actor, id, "alerts.clear", {});
        }),
      ),
    async test(actor, workspace) {
      const id = await orOverloaded(ruleOf(pool.query, actor, workspace));
      const event = JSON.stringify({ type: "alert.test", timestamp: new Date().toISOString(), data: {} });
      const [row] = await orOverloaded(
        pool.query<{ id: string }>(
          `insert into alert_deliveries (workspace_id, id, event)
           select workspace_id, $2, $3 from alert_rules where workspace_id = $1 and not exists (
             select from alert_deliveries where workspace_id = $1 and event like '{"type":"alert.test"%'
               and created_at > clock_timestamp() - interval '1 second')
           returning id`,
          [id, `evt_${randomHex()}`, event],
        ),
      );
      if (!row) {
        throw new Failure("unknown_entity", {
          field: "workspace",
          message: "No alerts are set, or a test was sent less than a second ago. Set alerts first.",
        });
      }
      return row.id;
    },
    deliveries: (actor, request) => listDeliveries(pool, actor, request),
  };
}

async function setRule(
  pool: Pool,
  actor: Actor,
  { workspace, alerts, newSecret }: { workspace: string; alerts: Alerts; newSecret: boolean },
): Promise<{ alerts: Alerts; secret: string | undefined }> {
  const creditBelow = alerts.creditBelow ? parseAmount("alerts.credit_below", alerts.creditBelow, 0n) : null;
  const spendShare = share("alerts.spend_share", alerts.spendShare);
  const failureShare = share("alerts.failure_share", alerts.failureShare);
  if (creditBelow === null && spendShare === null && failureShare === null) {
    throw invalid("alerts", "alerts must have credit_below, spend_share or failure_share.");
  }
  const fresh = `whsec_${randomBytes(24).toString("base64")}`;
  return orOverloaded(
    pool.tx(async (query) => {
      const id = await ruleOf(query, actor, workspace);
      const [row] = await query<RuleRow & { secret: string }>(
        `insert into alert_rules as r (workspace_id, url, secret, credit_below_micro, spend_share, failure_share)
         values ($1, $2, $3, $4, $5, $6)
         on conflict (workspace_id) do update set url = excluded.url, spend_share = excluded.spend_share,
           credit_below_micro = excluded.credit_below_micro, failure_share = excluded.failure_share,
           secret = case when $7 then excluded.secret else r.secret end
         returning *`,
        [id, alerts.webhookUrl, fresh, creditBelow, spendShare, failureShare, newSecret],
      );
      // The new thresholds are compared as if for the first time.
      await query("delete from alert_states where workspace_id = $1", [id]);
      if (!row) throw new Error("no rule was written");
      const secret = row.secret === fresh ? fresh : undefined;
      await record(query, actor, id, "alerts.set", { ...alertsOf(row), newSecret: secret !== undefined });
      return { alerts: alertsOf(row), secret };
    }),
  );
}

async function listDeliveries(
  pool: Pool,
  actor: Actor,
  { workspace, pageSize, pageToken }: { workspace: string; pageSize?: number; pageToken?: string },
): Promise<{ deliveries: AlertDelivery[]; nextPageToken: string | undefined }> {
  const size = sizeOfPage(pageSize);
  const [micros, last] = readPageToken(pageToken, /^(\d{1,16}) (evt_\w+)$/) ?? [];
  const id = await orOverloaded(ruleOf(pool.query, actor, workspace));
  const found = await orOverloaded(
    pool.query<AlertDelivery & { micros: bigint }>(
      `select id, created_at as "createdAt", event, state, attempts, next_at as "nextAt",
         response_status as "responseStatus", error, ${microsOf("created_at")} as micros
       from alert_deliveries
       where workspace_id = $1 and ($2::timestamptz is null or (created_at <= $2 and (created_at, id) < ($2, $3)))
       order by created_at desc, id desc limit $4`,
      [id, micros === undefined ? null : timeOf(BigInt(micros)), last ?? null, size + 1],
    ),
  );
  const { rows, nextPageToken } = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
  return { deliveries: rows.map(({ micros: _, ...row }) => row), nextPageToken };
}

/** Identifier of the rule: that of the workspace, or of the rule that watches all. */
async function ruleOf(query: Query, actor: Actor, workspace: string): Promise<string> {
  if (workspace === "" && actor.kind === "operator") return WHOLE_SERVICE;
  return (await findWorkspace(query, actor, workspace)).id;
}

function share(field: string, value: number | undefined): number | null {
  if (value === undefined) return null;
  if (!(value > 0 && value <= 1)) throw invalid(field, `${field} must be above 0, and at most 1.`);
  return value;
}

function alertsOf(row: RuleRow): Alerts {
  return {
    webhookUrl: row.url,
    ...(row.credit_below_micro === null ? {} : { creditBelow: amountText(row.credit_below_micro) }),
    ...(row.spend_share === null ? {} : { spendShare: row.spend_share }),
    ...(row.failure_share === null ? {} : { failureShare: row.failure_share }),
  };
}
