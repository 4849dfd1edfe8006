import { randomBytes } from "node:crypto";
import { LIMIT_NAMES, MAX_LIMIT } from "../config/tiers.ts";
import { Failure, invalid } from "../failure.ts";
import { orOverloaded, type Pool, type Query } from "../store/pool.ts";
import { type Actor, confinedTo, record } from "./audit.ts";
import { pageOf, readPageToken, sizeOfPage } from "./page.ts";

export const WORKSPACE_KINDS = ["personal", "organization"] as const;
export type WorkspaceKind = (typeof WORKSPACE_KINDS)[number];

export const SPEND_PERIODS = ["day", "week", "month"] as const;

/** Limits on the purchased credit spent in a calendar period, in millionths of a credit. */
export type SpendLimits = Partial<Record<(typeof SPEND_PERIODS)[number], bigint>>;

/** A workspace as people see it. Amounts are in millionths of a credit. */
export interface Workspace {
  id: string;
  name: string;
  kind: WorkspaceKind;
  createdAt: Date;
  /** In force. */
  tier: string;
  /** Whether an operator gave it. */
  tierOverridden: boolean;
  /** In force, by name. */
  limits: Record<string, number>;
  /** Names of the limits that an operator gave. */
  overriddenLimits: string[];
  granted: bigint;
  purchased: bigint;
  held: bigint;
  purchasedTotal: bigint;
  /** Requests that run. */
  running: number;
  spendLimits: SpendLimits;
}

export interface NextTier {
  name: string;
  /** Total of purchases from which it applies. */
  purchased: bigint;
  limits: Record<string, number>;
  missing: bigint;
}

/** What becomes of a limit: a number, none, or the tier's own again. */
export interface LimitChange {
  name: string;
  to: bigint | "unlimited" | "default" | undefined;
}

/** Every method throws Failure `overloaded` when the database is away. A workspace is named by identifier or name. */
export interface Workspaces {
  /**
   * Makes a workspace with an empty balance.
   * @throws Failure `invalid_request` naming `name` when it is not acceptable or taken.
   */
  create(actor: Actor, request: { name: string; kind: WorkspaceKind }): Promise<Workspace>;
  /** One page of workspaces by name. @throws Failure `invalid_request` naming the field. */
  list(request: {
    pageSize?: number;
    pageToken?: string;
  }): Promise<{ workspaces: Workspace[]; nextPageToken: string | undefined }>;
  /** @param workspace may be empty for an owner. @throws Failure `unknown_entity`, also for another owner's. */
  get(actor: Actor, workspace: string): Promise<Workspace>;
  /**
   * The tier that purchases lead to next, and what is still to be purchased for it; amounts in millionths of a credit.
   * @param workspace may be empty for an owner
   * @returns undefined when there is none, also because an operator gave the tier
   * @throws Failure `unknown_entity`.
   */
  nextTier(actor: Actor, workspace: string): Promise<NextTier | undefined>;
  /**
   * Puts a workspace into a tier at once.
   * @param tier empty: the one that follows from what was purchased
   * @throws Failure `invalid_request` naming `tier`; `unknown_entity`.
   */
  setTier(actor: Actor, workspace: string, tier: string): Promise<Workspace>;
  /** Overrides limits at once, all or none. @throws Failure `invalid_request` naming the field; `unknown_entity`. */
  setLimits(actor: Actor, workspace: string, changes: readonly LimitChange[]): Promise<Workspace>;
}

const COLUMNS = `w.id, w.name, w.kind, w.created_at as "createdAt", a.tier, coalesce(a.tier = a.tier_override, false) as "tierOverridden",
  a.limits, array(select jsonb_object_keys(a.overrides) order by 1) as "overriddenLimits", a.granted_micro as granted,
  a.purchased_micro as purchased, a.held_micro as held, a.purchased_total_micro as "purchasedTotal", a.running, a.spend_limits as "spendLimits"`;

/** An identifier begins with `ws_`, so that none is anybody's name. */
const NAME = /^(?!ws_)[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/;

export function createWorkspaces(pool: Pool): Workspaces {
  async function read(query: Query, id: string): Promise<Workspace> {
    const [row] = await query<Row>(
      `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id where w.id = $1`,
      [id],
    );
    if (!row) throw new Failure("unknown_entity", { field: "workspace" });
    return workspaceOf(row);
  }

  /** Changes the account of a workspace and puts its limits in force, in one transaction. */
  function change(
    actor: Actor,
    workspace: string,
    make: (query: Query, id: string) => Promise<{ action: string; details: object }>,
  ): Promise<Workspace> {
    return orOverloaded(
      pool.tx(async (query) => {
        const { id } = await findWorkspace(query, actor, workspace);
        const { action, details } = await make(query, id);
        await query("select refresh_limits($1)", [id]);
        await record(query, actor, id, action, details);
        return read(query, id);
      }),
    );
  }

  return {
    async create(actor, { name, kind }) {
      if (!NAME.test(name)) {
        throw invalid(
          "name",
          "name must have 1 to 100 of A-Z, a-z, 0-9, '.', '_' and '-', beginning with a letter or digit and not with ws_.",
        );
      }
      return orOverloaded(
        pool.tx(async (query) => {
          const id = await insertWorkspace(query, actor, name, kind);
          if (!id) throw invalid("name", `There is a workspace "${name}" already. Choose another name.`);
          return read(query, id);
        }),
      );
    },

    async list({ pageSize, pageToken }) {
      const size = sizeOfPage(pageSize);
      const [after = ""] = readPageToken(pageToken, /^([\w.-]+)$/) ?? [];
      const found = await orOverloaded(
        pool.query<Row>(
          `select ${COLUMNS} from workspaces w join accounts a on a.workspace_id = w.id where w.name > $1 order by w.name limit $2`,
          [after, size + 1],
        ),
      );
      const { rows, nextPageToken } = pageOf(found, size, ({ name }) => name);
      return { workspaces: rows.map(workspaceOf), nextPageToken };
    },

    get: (actor, workspace) =>
      orOverloaded(findWorkspace(pool.query, actor, workspace).then(({ id }) => read(pool.query, id))),

    async nextTier(actor, workspace) {
      const { id } = await orOverloaded(findWorkspace(pool.query, actor, workspace));
      const [tier] = await orOverloaded(
        pool.query<NextTier>(
          `select t.name, t.threshold_micro as purchased, t.limits, t.threshold_micro - a.purchased_total_micro as missing
           from accounts a join tiers t on t.threshold_micro > a.purchased_total_micro
           where a.workspace_id = $1 and a.tier is distinct from a.tier_override order by t.place limit 1`,
          [id],
        ),
      );
      return tier;
    },

    setTier: (actor, workspace, tier) =>
      change(actor, workspace, async (query, id) => {
        const known = await query<{ name: string }>("select name from tiers order by place");
        if (tier !== "" && !known.some(({ name }) => name === tier)) {
          const names = known.map(({ name }) => name).join(", ");
          throw invalid(
            "tier",
            `There is no such tier. Name one of ${names}, or leave it empty for the one that follows from the purchases (on the command line: auto).`,
          );
        }
        await query("update accounts set tier_override = nullif($2, '') where workspace_id = $1", [id, tier]);
        return { action: "tier.set", details: { tier: tier || null } };
      }),

    async setLimits(actor, workspace, changes) {
      const { set, reset } = readChanges(changes);
      return change(actor, workspace, async (query, id) => {
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

/**
 * Finds a workspace that an actor may see.
 * @param nameOrId empty: the owner's own
 * @throws Failure `unknown_entity`, with one wording for what does not exist and what is another owner's.
 */
export async function findWorkspace(
  query: Query,
  actor: Actor,
  nameOrId: string,
): Promise<{ id: string; name: string }> {
  const own = confinedTo(actor);
  const asked = nameOrId || own;
  if (!asked) throw invalid("workspace", "Name the workspace, or give its identifier.");
  const [row] = asked.includes("\0")
    ? []
    : await query<{ id: string; name: string }>(
        "select id, name from workspaces where (id = $1 or name = $1) and ($2::text is null or id = $2)",
        [asked, own ?? null],
      );
  if (!row) {
    const shown = JSON.stringify(asked.slice(0, 200));
    throw new Failure("unknown_entity", { field: "workspace", message: `There is no workspace ${shown}.` });
  }
  return row;
}

/**
 * Makes a workspace and its account, with the limits of the first tier.
 * @returns its identifier; undefined when there is one of this name
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

type Row = Omit<Workspace, "spendLimits"> & { spendLimits: Record<string, number> };

function workspaceOf(row: Row): Workspace {
  return { ...row, spendLimits: readSpendLimits(row.spendLimits) };
}

/** Reads the column `spend_limits`, whose figures are far below what a number holds exactly. */
export function readSpendLimits(column: Record<string, number>): SpendLimits {
  return Object.fromEntries(
    SPEND_PERIODS.flatMap((period) => {
      const micro = column[period];
      return micro === undefined ? [] : [[period, BigInt(micro)]];
    }),
  );
}

function readChanges(changes: readonly LimitChange[]): { set: Record<string, number | null>; reset: string[] } {
  if (changes.length === 0) throw invalid("overrides", "Name at least one limit to change.");
  const set: Record<string, number | null> = {};
  const reset: string[] = [];
  const seen = new Set<string>();
  for (const [i, { name, to }] of changes.entries()) {
    const field = `overrides[${i}]`;
    if (!LIMIT_NAMES.some((known) => known === name)) {
      throw invalid(`${field}.name`, `A limit is one of ${LIMIT_NAMES.join(", ")}.`);
    }
    if (seen.has(name)) throw invalid(`${field}.name`, `${name} is changed twice. Name it once.`);
    seen.add(name);
    if (to === undefined) throw invalid(field, `Say what ${name} becomes: a value, unlimited, or reset.`);
    if (to === "default") reset.push(name);
    else if (to === "unlimited") set[name] = null;
    else if (to >= 0n && to <= BigInt(MAX_LIMIT)) set[name] = Number(to);
    else throw invalid(`${field}.value`, `${name} must be a whole number from 0 to ${MAX_LIMIT}.`);
  }
  return { set, reset };
}
