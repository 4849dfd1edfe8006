import { randomBytes } from "node:crypto";
import { Failure, invalid } from "../../failure.ts";
import { orOverloaded, type Pool, type Query } from "../../store/pool.ts";
import { type Actor, confinedTo, record } from "../audit.ts";
import { pageOf, readPageToken, sizeOfPage } from "../page.ts";
import { type LimitChange, readLimitChanges } from "./limits.ts";

export type WorkspaceKind = "personal" | "organization";

export const SPEND_PERIODS = ["day", "week", "month"] as const;

/** Limits on the purchased credit spent in a calendar period, in millionths of a credit. */
export type SpendLimits = Partial<Record<(typeof SPEND_PERIODS)[number], bigint>>;

/** A workspace with its balance and limits. Amounts are in millionths of a credit. */
export interface Workspace {
  id: string;
  name: string;
  kind: WorkspaceKind;
  createdAt: Date;
  /** Name of the tier in force. */
  tier: string;
  /** Whether an operator set the tier. */
  tierOverridden: boolean;
  /** Limits in force, by name. */
  limits: Record<string, number>;
  /** Names of the limits that an operator set. */
  overriddenLimits: string[];
  granted: bigint;
  purchased: bigint;
  held: bigint;
  purchasedTotal: bigint;
  /** Number of requests in flight. */
  running: number;
  spendLimits: SpendLimits;
}

interface NextTier {
  name: string;
  /** Total purchases from which the tier applies. */
  purchased: bigint;
  limits: Record<string, number>;
  /** Credit still to be purchased for the tier. */
  missing: bigint;
}

interface WorkspacePage {
  workspaces: Workspace[];
  nextPageToken: string | undefined;
}

/**
 * Workspaces. Methods take a workspace by identifier or name, which an owner may leave empty. Every method throws
 * Failure `overloaded` when the database is unavailable.
 */
export interface Workspaces {
  /**
   * Creates a workspace with an empty balance.
   * @throws Failure `invalid_request` with `name` when the name is not valid or taken
   */
  create(actor: Actor, request: { name: string; kind: WorkspaceKind }): Promise<Workspace>;
  /** Lists workspaces by name, in pages. @throws Failure `invalid_request` with the field */
  list(request: { pageSize?: number; pageToken?: string }): Promise<WorkspacePage>;
  /** @throws Failure `unknown_entity`, also for a workspace of another owner */
  get(actor: Actor, workspace: string): Promise<Workspace>;
  /**
   * Finds the tier that purchases lead to next.
   * @returns undefined when there is no higher tier, or when an operator set the tier
   * @throws Failure `unknown_entity`
   */
  nextTier(actor: Actor, workspace: string): Promise<NextTier | undefined>;
  /**
   * Sets the tier of a workspace. It applies at once.
   * @param tier empty: the tier that follows from the purchases
   * @throws Failure `invalid_request` with `tier`; `unknown_entity`
   */
  setTier(actor: Actor, workspace: string, tier: string): Promise<Workspace>;
  /**
   * Overrides limits, all or none. They apply at once. @throws Failure `invalid_request` with the field;
   * `unknown_entity`
   */
  setLimits(actor: Actor, workspace: string, changes: readonly LimitChange[]): Promise<Workspace>;
}

/** Columns of a workspace `w` with its account `a`. */
export const COLUMNS = `w.id, w.name, w.kind, w.created_at as "createdAt", a.tier,
  coalesce(a.tier = a.tier_override, false) as "tierOverridden", a.limits,
  array(select jsonb_object_keys(a.overrides) order by 1) as "overriddenLimits", a.granted_micro as granted,
  a.purchased_micro as purchased, u.held, a.purchased_total_micro as "purchasedTotal", u.running,
  a.spend_limits as "spendLimits"`;

/** Names do not begin with `ws_`, so they cannot be confused with identifiers. */
const NAME = /^(?!ws_)[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

/** Changes the account of a workspace. @returns the entry for the audit */
type AccountChange = (query: Query, id: string) => Promise<{ action: string; details: object }>;

export function createWorkspaces(pool: Pool): Workspaces {
  return {
    async create(actor, { name, kind }) {
      if (!NAME.test(name)) {
        throw invalid(
          "name",
          "name must have 1 to 100 of A-Z, a-z, 0-9, '.', '_' and '-', " +
            "beginning with a letter or digit and not with ws_.",
        );
      }
      return orOverloaded(
        pool.tx(async (query) => {
          const id = await insertWorkspace(query, actor, name, kind);
          if (!id) throw invalid("name", `There is a workspace "${name}" already. Choose another name.`);
          return readWorkspace(query, id);
        }),
      );
    },
    list: (request) => listWorkspaces(pool, request),
    get: (actor, workspace) =>
      orOverloaded(findWorkspace(pool.query, actor, workspace).then(({ id }) => readWorkspace(pool.query, id))),
    nextTier: (actor, workspace) => orOverloaded(readNextTier(pool, actor, workspace)),
    setTier: (actor, workspace, tier) =>
      changeAccount(pool, actor, workspace, async (query, id) => {
        await checkTier(query, tier);
        await query("update accounts set tier_override = nullif($2, '') where workspace_id = $1", [id, tier]);
        return { action: "tier.set", details: { tier: tier || null } };
      }),
    async setLimits(actor, workspace, changes) {
      const { set, reset } = readLimitChanges(changes);
      return changeAccount(pool, actor, workspace, async (query, id) => {
        await query("update accounts set overrides = (overrides - $2::text[]) || $3 where workspace_id = $1", [
          id,
          reset,
          JSON.stringify(set),
        ]);
        return { action: "limits.set", details: { set, reset } };
      });
    },
  };
}

async function readWorkspace(query: Query, id: string): Promise<Workspace> {
  const [row] = await query<Row>(
    `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id, in_use(w.id) u where w.id = $1`,
    [id],
  );
  if (!row) throw new Failure("unknown_entity", { field: "workspace" });
  return workspaceOf(row);
}

async function listWorkspaces(
  pool: Pool,
  { pageSize, pageToken }: { pageSize?: number; pageToken?: string },
): Promise<WorkspacePage> {
  const size = sizeOfPage(pageSize);
  const [after = ""] = readPageToken(pageToken, /^([\w.-]+)$/) ?? [];
  const found = await orOverloaded(
    pool.query<Row>(
      `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id, in_use(w.id) u
       where w.name > $1 order by w.name limit $2`,
      [after, size + 1],
    ),
  );
  const { rows, nextPageToken } = pageOf(found, size, ({ name }) => name);
  return { workspaces: rows.map(workspaceOf), nextPageToken };
}

async function readNextTier(pool: Pool, actor: Actor, workspace: string): Promise<NextTier | undefined> {
  const { id } = await findWorkspace(pool.query, actor, workspace);
  const [tier] = await pool.query<NextTier>(
    `select t.name, t.threshold_micro as purchased, t.limits, t.threshold_micro - a.purchased_total_micro as missing
     from accounts a join tiers t on t.threshold_micro > a.purchased_total_micro
     where a.workspace_id = $1 and a.tier is distinct from a.tier_override order by t.place limit 1`,
    [id],
  );
  return tier;
}

/** @throws Failure `invalid_request` with `tier`, unless it is empty or the name of a tier */
async function checkTier(query: Query, tier: string): Promise<void> {
  const tiers = await query<{ name: string }>("select name from tiers order by place");
  if (tier === "" || tiers.some(({ name }) => name === tier)) return;
  const names = tiers.map(({ name }) => name).join(", ");
  throw invalid(
    "tier",
    `There is no such tier. Use one of ${names}, or leave it empty for the tier that follows from the purchases ` +
      "(on the command line: auto).",
  );
}

/** Changes the account of a workspace and applies its limits, in one transaction. */
function changeAccount(pool: Pool, actor: Actor, workspace: string, make: AccountChange): Promise<Workspace> {
  return orOverloaded(
    pool.tx(async (query) => {
      const { id } = await findWorkspace(query, actor, workspace);
      const { action, details } = await make(query, id);
      await query("select refresh_limits($1)", [id]);
      await record(query, actor, id, action, details);
      return readWorkspace(query, id);
    }),
  );
}

/**
 * Finds a workspace that an actor may see.
 * @param nameOrId empty: the workspace of the owner
 * @throws Failure `unknown_entity`, with one message for a workspace that does not exist and one of another owner
 */
export async function findWorkspace(
  query: Query,
  actor: Actor,
  nameOrId: string,
): Promise<{ id: string; name: string }> {
  const own = confinedTo(actor);
  const wanted = nameOrId || own;
  if (!wanted) throw invalid("workspace", "Name the workspace, or give its identifier.");
  const [row] = wanted.includes("\0")
    ? []
    : await query<{ id: string; name: string }>(
        "select id, name from workspaces where (id = $1 or name = $1) and ($2::text is null or id = $2)",
        [wanted, own ?? null],
      );
  if (!row) {
    const shown = JSON.stringify(wanted.slice(0, 200));
    throw new Failure("unknown_entity", { field: "workspace", message: `There is no workspace ${shown}.` });
  }
  return row;
}

/**
 * Creates a workspace and its account, with the limits of the first tier.
 * @returns its identifier; undefined when the name is taken
 */
export async function insertWorkspace(
  query: Query,
  actor: Actor,
  name: string,
  kind: WorkspaceKind,
): Promise<string | undefined> {
  const [row] = await query<{ id: string }>(
    "insert into workspaces (id, name, kind) values ($1, $2, $3) on conflict (name) do nothing returning id",
    [`ws_${randomBytes(12).toString("hex")}`, name, kind],
  );
  if (!row) return undefined;
  await query("insert into accounts (workspace_id) values ($1)", [row.id]);
  await query("select refresh_limits($1)", [row.id]);
  await record(query, actor, row.id, "workspace.create", { name, kind });
  return row.id;
}

/** A row of `COLUMNS`. */
export type Row = Omit<Workspace, "spendLimits"> & { spendLimits: Record<string, number> };

export function workspaceOf(row: Row): Workspace {
  return { ...row, spendLimits: readSpendLimits(row.spendLimits) };
}

/** Reads the column `spend_limits`. Its amounts are small enough to be exact as numbers. */
export function readSpendLimits(column: Record<string, number>): SpendLimits {
  return Object.fromEntries(
    SPEND_PERIODS.flatMap((period) => {
      const micro = column[period];
      return micro === undefined ? [] : [[period, BigInt(micro)]];
    }),
  );
}
