import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Client } from "@connectrpc/connect";
import { type ActivityService, ActorKindSchema, type AuditEntry } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { numberOf } from "../../../src/contract/json-names.ts";
import { pageWithRows } from "../all-pages.ts";
import { words } from "../format.ts";
import { ACTIONS } from "./sentence.ts";

export type Calls = Client<typeof ActivityService>;

/** What is listed. An empty string means no filter. */
export interface Filter {
  /** Name of a workspace; empty: that of the session, or every change for an operator. */
  readonly workspace: string;
  /** The part of actions before the dot, such as `key`. */
  readonly kind: string;
  /** Word of the kind of actor. */
  readonly by: string;
  /** Identifier of a token or person. */
  readonly actor: string;
  /** First day of the period, as 2026-01-31. */
  readonly from: string;
  /** Last day of the period. */
  readonly to: string;
}

export const ACTORS = [
  ["", "By anyone"],
  ["owner", "By the owner token"],
  ["member", "By members"],
  ["operator", "By operators"],
  ["service", "By the service"],
] as const;

/** Kinds of action with their names, in the order of the alphabet. */
export const KINDS: readonly (readonly [kind: string, label: string])[] = [
  ["", "Any change"],
  ...[...new Set(ACTIONS.map((action) => action.split(".")[0] ?? ""))]
    .sort()
    .map((kind) => [kind, capital(words(kind))] as const),
];

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

/** The filter that the address of a page has. */
export function filterOf(query: URLSearchParams, workspace = ""): Filter {
  const text = (name: string) => query.get(name) ?? "";
  const date = (name: string) => (/^\d{4}-\d\d-\d\d$/.test(text(name)) ? text(name) : "");
  const [kind, by] = [text("kind"), text("by")];
  return {
    workspace,
    kind: KINDS.some(([one]) => one === kind) ? kind : "",
    by: ACTORS.some(([one]) => one === by) ? by : "",
    actor: text("actor"),
    from: date("from"),
    to: date("to"),
  };
}

/** Whether a filter leaves something out. */
export function narrows({ kind, by, actor, from, to }: Filter): boolean {
  return [kind, by, actor, from, to].some((text) => text !== "");
}

const DAY_MS = 86_400_000;

/** @returns undefined for a day that does not exist */
function startOf(day: string, offsetMs = 0): Timestamp | undefined {
  const date = new Date(Date.parse(`${day}T00:00:00Z`) + offsetMs);
  return Number.isNaN(date.getTime()) ? undefined : timestampFromDate(date);
}

export interface Found {
  readonly entries: readonly AuditEntry[];
  /** Token of the next page; empty on the last page. */
  readonly next: string;
  /** Start of the searched time; undefined if the whole period was searched. */
  readonly searchedTo: Timestamp | undefined;
}

/** Searches the next page. With a filter that matches rarely, it may be empty and still have a next token. */
export async function findChanges(
  calls: Calls,
  filter: Filter,
  page: { pageToken: string; pageSize: number },
  signal: AbortSignal,
): Promise<Found> {
  const [startTime, endTime] = [startOf(filter.from), startOf(filter.to, DAY_MS)];
  const request = {
    ...{ workspace: filter.workspace, action: filter.kind, actorId: filter.actor, pageSize: page.pageSize },
    actorKind: numberOf(ActorKindSchema, filter.by),
    ...(startTime ? { startTime } : {}),
    ...(endTime ? { endTime } : {}),
  };
  const load = (pageToken: string) => calls.listAudit({ ...request, pageToken }, { signal });
  const { entries, nextPageToken, searchedTo } = await pageWithRows(load, ({ entries }) => entries, page.pageToken);
  return { entries, next: nextPageToken, searchedTo };
}
