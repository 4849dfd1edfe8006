import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  AlertDeliveryStateSchema,
  AlertFormatSchema,
  type AlertService,
  type Alerts,
} from "../../gen/chorus/admin/v1/alerts_pb.js";
import { Failure, invalid } from "../contract/failure.ts";
import { numberOf, readEnum } from "../contract/json-names.ts";
import { isMailTarget } from "../contract/mail-address.ts";
import { randomHex } from "../contract/random-hex.ts";
import type { Pool, Query } from "../store/pool.ts";
import type { Admin } from "./shared/admin.ts";
import { amountText, parseAmount } from "./shared/amount.ts";
import { type Actor, auditedReceiver, record, WHOLE_SERVICE } from "./shared/audit.ts";
import { microsOf, pageOf, readPageToken, sizeOfPage, timeOf } from "./shared/page.ts";
import { findWorkspace } from "./workspaces/workspace.ts";

type AlertAdmin = Admin<typeof AlertService>;

/** A row of `alert_rules`: where alerts are sent, and their thresholds. Null thresholds raise no alert. */
interface RuleRow {
  /** Address of a webhook, or `mailto:` with addresses. */
  url: string;
  /** In millionths of a credit. */
  credit_below_micro: bigint | null;
  /** Shares are above 0, to 1. */
  spend_share: number | null;
  failure_share: number | null;
  cap_share: number | null;
  /** Limits such as `user:credits_per_day`; null: all. */
  cap_limits: string[] | null;
  format: "event" | "slack";
}

const MAX_CAP_LIMITS = 32;
const CAP_LIMIT =
  /^(key|user|tag\.[a-z0-9_.-]{1,32}):(credits|requests|(in|out)put_tokens)_(per_day|per_week|per_month|total)$/;

/** Throws Failure `invalid_request` with the field, for an address to which no alerts are sent. */
type CheckUrl = (field: string, url: string) => void;

/**
 * Sets alerts and lists their deliveries. For an operator, an empty workspace stands for the alerts of the operators,
 * which watch every workspace.
 */
export function createAlertAdmin(pool: Pool, checkUrl: CheckUrl): AlertAdmin {
  return {
    setAlerts: setAlerts(pool, checkUrl),
    async getAlerts({ workspace }, actor) {
      const id = await ruleOf(pool.query, actor, workspace);
      const [row] = await pool.query<RuleRow>("select * from alert_rules where workspace_id = $1", [id]);
      return row ? { alerts: alertsOf(row) } : {};
    },
    async clearAlerts({ workspace }, actor) {
      await pool.tx(async (query) => {
        const id = await ruleOf(query, actor, workspace);
        await query("delete from alert_rules where workspace_id = $1", [id]);
        await query("delete from alert_states where workspace_id = $1", [id]);
        await query("delete from cap_alerts where workspace_id = $1", [id]);
        await query("delete from alert_deliveries where workspace_id = $1 and state = 'waiting'", [id]);
        await record(query, actor, id, "alerts.clear", {});
      });
      return {};
    },
    testAlerts: testAlerts(pool),
    listAlertDeliveries: listAlertDeliveries(pool),
  };
}

function setAlerts(pool: Pool, checkUrl: CheckUrl): AlertAdmin["setAlerts"] {
  return async ({ workspace, alerts, newSecret }, actor) => {
    if (!alerts) throw invalid("alerts", "alerts must have a webhook and at least one threshold.");
    const rule = readRule(alerts);
    checkUrl("alerts.webhook_url", rule.url);
    const isMail = isMailTarget(rule.url);
    if (isMail && newSecret) throw invalid("new_secret", "E-mail is not signed, so it has no secret to renew.");
    const fresh = `whsec_${randomBytes(24).toString("base64")}`;
    return pool.tx(async (query) => {
      const id = await ruleOf(query, actor, workspace);
      const [before] = await query<RuleRow>("select * from alert_rules where workspace_id = $1 for update", [id]);
      const [row] = await query<RuleRow & { secret: string }>(
        `insert into alert_rules as r
           (workspace_id, url, secret, credit_below_micro, spend_share, failure_share, cap_share, cap_limits,
            format)
         values ($1, $2, $3, $4, $5, $6, $7, $8, $10)
         on conflict (workspace_id) do update set url = excluded.url, spend_share = excluded.spend_share,
           credit_below_micro = excluded.credit_below_micro, failure_share = excluded.failure_share,
           cap_share = excluded.cap_share, cap_limits = excluded.cap_limits,
           format = excluded.format,
           secret = case when $9 then excluded.secret else r.secret end
         returning *`,
        [
          ...[id, rule.url, fresh, rule.credit_below_micro, rule.spend_share, rule.failure_share],
          ...[rule.cap_share, rule.cap_limits, newSecret || isMail || isMailTarget(before?.url ?? ""), rule.format],
        ],
      );
      await compareAgain(query, id, changed(before, rule), before?.url === rule.url);
      if (!isDeepStrictEqual(capsOf(before), capsOf(rule))) await compareCaps(query, id);
      if (!row) throw new Error("no rule was written");
      // Nobody has seen the secret of a rule that sent e-mail.
      const secret = row.secret === fresh && !isMail ? fresh : "";
      const details = { ...alertsOf(row), webhookUrl: auditedReceiver(row.url), format: row.format };
      await record(query, actor, id, "alerts.set", { ...details, newSecret: secret !== "" });
      return { alerts: alertsOf(row), secret };
    });
  };
}

/** Kinds of alerts whose receiver or threshold differs. */
function changed(before: RuleRow | undefined, rule: RuleRow): string[] {
  const thresholds = { credit_left: "credit_below_micro", spend_share: "spend_share", failure_share: "failure_share" };
  return Object.entries(thresholds).flatMap(([kind, column]) => {
    const isSame = before?.url === rule.url && before[column as keyof RuleRow] === rule[column as keyof RuleRow];
    return isSame ? [] : [kind];
  });
}

/**
 * Lets the alerts of some kinds be compared as if for the first time. The receiver knows of none that waits for room.
 * @param isKnown whether the receiver knows which of them are raised. Then those that are not crossed are cleared
 */
async function compareAgain(query: Query, id: string, kinds: readonly string[], isKnown: boolean): Promise<void> {
  await query(
    `delete from alert_states
     where workspace_id = $1 and split_part(kind, ':', 1) = any ($2) and not ($3 and cleared_at is null)`,
    [id, kinds, isKnown],
  );
  await query(
    `update alert_states set raised_at = '-infinity'
     where workspace_id = $1 and split_part(kind, ':', 1) = any ($2) and raised_at < 'infinity'`,
    [id, kinds],
  );
}

/** What alerts on caps depend on. */
const capsOf = (rule: RuleRow | undefined) => [rule?.url, rule?.cap_share, rule?.cap_limits];

/** Lets all caps of a rule be compared with its share, whether their subjects are in use or not. */
async function compareCaps(query: Query, id: string): Promise<void> {
  await query("delete from cap_alerts where workspace_id = $1", [id]);
  await query(
    `insert into cap_changes (workspace_id, subject)
     select distinct workspace_id, subject from caps where $1 in ('', workspace_id)`,
    [id],
  );
}

/** @throws Failure `invalid_request` with the field */
function readRule(alerts: Alerts): RuleRow {
  const rule: RuleRow = {
    url: alerts.webhookUrl,
    credit_below_micro: alerts.creditBelow ? parseAmount("alerts.credit_below", alerts.creditBelow, 0n) : null,
    spend_share: readShare("alerts.spend_share", alerts.spendShare),
    failure_share: readShare("alerts.failure_share", alerts.failureShare),
    cap_share: readShare("alerts.cap_share", alerts.capShare),
    cap_limits: alerts.capLimits.length > 0 ? alerts.capLimits : null,
    format: readEnum("alerts.format", AlertFormatSchema, alerts.format) === "slack" ? "slack" : "event",
  };
  const { credit_below_micro, spend_share, failure_share, cap_share } = rule;
  if ([credit_below_micro, spend_share, failure_share, cap_share].every((threshold) => threshold === null)) {
    throw invalid("alerts", "alerts must have credit_below, spend_share, failure_share or cap_share.");
  }
  checkCapLimits(rule);
  return rule;
}

function checkCapLimits({ cap_limits, cap_share }: RuleRow): void {
  if (!cap_limits) return;
  const field = "alerts.cap_limits";
  if (cap_share === null) throw invalid(field, `${field} needs cap_share. Set it, or leave ${field} out.`);
  if (cap_limits.length > MAX_CAP_LIMITS) throw invalid(field, `${field} may have ${MAX_CAP_LIMITS} limits at most.`);
  if (cap_limits.every((limit) => CAP_LIMIT.test(limit))) return;
  throw invalid(
    field,
    `${field} must have limits such as user:credits_per_day: key, user or tag.NAME, then credits, requests, ` +
      "input_tokens or output_tokens, then per_day, per_week, per_month or total.",
  );
}

/** Time between two tests, in milliseconds. Mails go to people, who may not have asked for them. */
const TEST_PAUSE_MS = { webhook: 1_000, mail: 60_000 };

function testAlerts(pool: Pool): AlertAdmin["testAlerts"] {
  return async ({ workspace }, actor) => {
    const event = JSON.stringify({ type: "alert.test", timestamp: new Date().toISOString(), data: {} });
    return pool.tx(async (query) => {
      const id = await ruleOf(query, actor, workspace);
      const [rule] = await query<{ url: string }>("select url from alert_rules where workspace_id = $1 for update", [
        id,
      ]);
      if (!rule)
        throw new Failure("unknown_entity", { field: "workspace", message: "No alerts are set. Set some first." });
      const pauseMs = isMailTarget(rule.url) ? TEST_PAUSE_MS.mail : TEST_PAUSE_MS.webhook;
      const [last] = await query<{ ms: number | null }>(
        `select (extract(epoch from clock_timestamp() - max(created_at)) * 1000)::float8 as ms
         from alert_deliveries where workspace_id = $1 and event like '{"type":"alert.test"%'`,
        [id],
      );
      const retryAfterMs = Math.ceil(pauseMs - (last?.ms ?? pauseMs));
      if (retryAfterMs > 0) {
        const message = `A test was sent less than ${pauseMs / 1_000} s ago. Wait, then send another one.`;
        throw new Failure("rate_limited", { message, retryAfterMs });
      }
      const deliveryId = `evt_${randomHex()}`;
      await query("insert into alert_deliveries (workspace_id, id, event) values ($1, $2, $3)", [
        id,
        deliveryId,
        event,
      ]);
      return { deliveryId };
    });
  };
}

/** An event that is sent. */
interface DeliveryRow {
  id: string;
  createdAt: Date;
  micros: bigint;
  /** The JSON text that is sent. */
  event: string;
  state: "waiting" | "delivered" | "failed";
  attempts: number;
  /** Time of the next attempt of one that waits. */
  nextAt: Date;
  responseStatus: number | null;
  error: string | null;
}

/** Lists deliveries in pages, newest first. */
function listAlertDeliveries(pool: Pool): AlertAdmin["listAlertDeliveries"] {
  return async ({ workspace, pageSize, pageToken }, actor) => {
    const size = sizeOfPage(pageSize);
    const [micros, last] = readPageToken(pageToken, /^(\d{1,16}) (evt_\w+)$/) ?? [];
    const id = await ruleOf(pool.query, actor, workspace);
    const found = await pool.query<DeliveryRow>(
      `select id, created_at as "createdAt", event, state, attempts, next_at as "nextAt",
         response_status as "responseStatus", error, ${microsOf("created_at")} as micros
       from alert_deliveries
       where workspace_id = $1 and ($2::timestamptz is null or (created_at <= $2 and (created_at, id) < ($2, $3)))
       order by created_at desc, id desc limit $4`,
      [id, timeOf(micros), last ?? null, size + 1],
    );
    const { rows, nextPageToken } = pageOf(found, size, (row) => `${row.micros} ${row.id}`);
    const deliveries = rows.map(({ id, createdAt, event, state, attempts, nextAt, responseStatus, error }) => ({
      id,
      createdAt: timestampFromDate(createdAt),
      event,
      state: numberOf(AlertDeliveryStateSchema, state),
      attempts,
      ...(state === "waiting" ? { nextAttemptAt: timestampFromDate(nextAt) } : {}),
      responseStatus: responseStatus ?? 0,
      error: error ?? "",
    }));
    return { deliveries, nextPageToken };
  };
}

/** Identifier of the rule: that of the workspace, or of the rule that watches all. */
async function ruleOf(query: Query, actor: Actor, workspace: string): Promise<string> {
  if (workspace === "" && actor.kind === "operator") return WHOLE_SERVICE;
  return (await findWorkspace(query, actor, workspace)).id;
}

function readShare(field: string, value: number | undefined): number | null {
  if (value === undefined) return null;
  if (!(value > 0 && value <= 1)) throw invalid(field, `${field} must be above 0, and at most 1.`);
  return value;
}

function alertsOf(row: RuleRow) {
  return {
    webhookUrl: row.url,
    format: numberOf(AlertFormatSchema, row.format),
    ...(row.credit_below_micro === null ? {} : { creditBelow: amountText(row.credit_below_micro) }),
    ...(row.spend_share === null ? {} : { spendShare: row.spend_share }),
    ...(row.failure_share === null ? {} : { failureShare: row.failure_share }),
    ...(row.cap_share === null ? {} : { capShare: row.cap_share }),
    ...(row.cap_limits === null ? {} : { capLimits: row.cap_limits }),
  };
}
