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
import { iso } from "../format.ts";
import { boundsOf, type Period } from "../parts/period.tsx";
import { activity } from "../rpc.ts";
import { saveCsv } from "../save.ts";

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

/** Saves the requests that match the filter as a CSV file. @returns a sentence about the result */
export async function exportGenerations(filter: Filter, progress: Progress, signal: AbortSignal): Promise<string> {
  const { rows, isCut } = await allPages(async (token) => {
    const { generations, next } = await find(filter, token, 1000, signal);
    return { rows: generations, next };
  }, progress);
  saveCsv("chorus-activity.csv", [
    [
      "time",
      "id",
      "request_id",
      "key_id",
      "key_name",
      "streamed",
      "shape",
      "effort",
      "level",
      "input_tokens",
      "cached_tokens",
    ].concat([
      "output_tokens",
      "credits",
      "latency_ms",
      "outcome",
      "finish_reason",
      "model_calls",
      "score",
      "user",
      "tags",
    ]),
    ...rows.map((row) => [
      row.at ? iso(row.at) : "",
      row.id,
      row.requestId,
      row.keyId,
      row.keyName,
      String(row.streamed),
      wordOf(AnswerShapeSchema, row.shape),
      wordOf(EffortSchema, row.effort),
      wordOf(EffortSchema, row.level),
      row.inputTokens,
      row.cachedTokens,
      row.outputTokens,
      row.credits,
      row.latencyMs,
      endOf(row),
      wordOf(FinishReasonSchema, row.finishReason),
      row.modelCalls ?? "",
      row.score ?? "",
      row.user,
      Object.keys(row.tags).length > 0 ? JSON.stringify(row.tags) : "",
    ]),
  ]);
  return isCut
    ? `Saved the newest ${rows.length} requests; there are more. Choose a shorter period.`
    : `Saved ${rows.length} requests.`;
}
