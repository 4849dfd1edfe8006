import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Timestamp } from "@bufbuild/protobuf/wkt";
import {
  AnswerShapeSchema,
  type Generation,
  type ListGenerationsRequestSchema,
  OutcomeSchema,
} from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema, FinishReasonSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { numberOf, wordOf } from "../../../src/contract/json-names.ts";
import { allPages, type Progress, pageWithRows } from "../all-pages.ts";
import { type Cell, saveCsv } from "../csv.ts";
import { counted, iso } from "../format.ts";
import { boundsOf, type Period, still } from "../parts/period.tsx";
import { activity } from "../rpc.ts";

export interface Filter {
  readonly period: Period;
  /** An empty string means no filter; also for the members below. */
  readonly keyId: string;
  /** Word of an outcome, or the code of a failure. */
  readonly outcome: string;
  readonly level: string;
  readonly user: string;
  /** NAME=VALUE. */
  readonly tag: string;
}

export interface Found {
  readonly generations: Generation[];
  /** Token of the next page; empty on the last page. */
  readonly next: string;
  /** Start of the searched time; undefined if the whole period was searched. */
  readonly searchedTo: Timestamp | undefined;
}

/**
 * Searches the next page of requests. With a filter that matches rarely, the page may be empty and still have a next
 * token.
 */
export async function find(filter: Filter, pageToken: string, pageSize: number, signal: AbortSignal): Promise<Found> {
  const request = {
    ...boundsOf(filter.period),
    keyId: filter.keyId,
    ended: endedOf(filter.outcome),
    level: numberOf(EffortSchema, filter.level),
    user: filter.user,
    tag: filter.tag,
    pageSize,
  };
  const load = (token: string) => activity.listGenerations({ ...request, pageToken: token }, { signal });
  const page = await pageWithRows(load, ({ generations }) => generations, pageToken);
  return { generations: page.generations, next: page.nextPageToken, searchedTo: page.searchedTo };
}

function endedOf(word: string): NonNullable<MessageInitShape<typeof ListGenerationsRequestSchema>["ended"]> {
  if (word === "") return { case: undefined };
  const outcome = numberOf(OutcomeSchema, word);
  return outcome ? { case: "outcome", value: outcome } : { case: "failureCode", value: word };
}

/** How a request ended: the code of its failure, or the word of its outcome. */
export function endOf({ outcome, failureCode }: Generation): string {
  return failureCode || wordOf(OutcomeSchema, outcome);
}

const COLUMNS: readonly (readonly [name: string, cell: (row: Generation) => Cell])[] = [
  ["time", ({ at }) => (at ? iso(at) : "")],
  ["id", ({ id }) => id],
  ["request_id", ({ requestId }) => requestId],
  ["key_id", ({ keyId }) => keyId],
  ["key_name", ({ keyName }) => keyName],
  ["streamed", ({ streamed }) => String(streamed)],
  ["shape", ({ shape }) => wordOf(AnswerShapeSchema, shape)],
  ["effort", ({ effort }) => wordOf(EffortSchema, effort)],
  ["level", ({ level }) => wordOf(EffortSchema, level)],
  ["input_tokens", ({ inputTokens }) => inputTokens],
  ["cached_tokens", ({ cachedTokens }) => cachedTokens],
  ["output_tokens", ({ outputTokens }) => outputTokens],
  ["credits", ({ credits }) => credits],
  ["latency_ms", ({ latencyMs }) => latencyMs],
  ["outcome", endOf],
  ["finish_reason", ({ finishReason }) => wordOf(FinishReasonSchema, finishReason)],
  ["model_calls", ({ modelCalls = "" }) => modelCalls],
  ["score", ({ score = "" }) => score],
  ["user", ({ user }) => user],
  ["tags", ({ tags }) => (Object.keys(tags).length > 0 ? JSON.stringify(tags) : "")],
];

/** Saves the requests that match the filter as a CSV file. @returns a sentence about the result */
export async function exportGenerations(filter: Filter, progress: Progress, signal: AbortSignal): Promise<string> {
  const shown = { ...filter, period: still(filter.period) };
  const { rows, isCut } = await allPages(async (token) => {
    const { generations, next } = await find(shown, token, 1000, signal);
    return { rows: generations, next };
  }, progress);
  const cells = rows.map((row) => COLUMNS.map(([, cell]) => cell(row)));
  saveCsv("chorus-activity.csv", [COLUMNS.map(([name]) => name), ...cells]);
  return isCut
    ? `Saved the newest ${counted(rows.length, "request")}; there are more. Choose a shorter period.`
    : `Saved ${counted(rows.length, "request")}.`;
}
