import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { type MetricsInterval, MetricsIntervalSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import { wordOf } from "../../contract/json-names.ts";
import { nearestTime, readTimestamp } from "./fields.ts";

export type Interval = "minute" | "hour" | "day" | "month";

const LIST = new Intl.ListFormat("en-GB", { type: "disjunction" });

/** Reads the interval of the points of a series. @throws Failure `invalid_request` with `interval` for any other one */
export function readInterval<I extends Interval>(interval: MetricsInterval, known: readonly I[]): I {
  const word = wordOf(MetricsIntervalSchema, interval);
  const found = known.find((one) => one === word);
  if (!found) throw invalid("interval", `interval must be ${LIST.format(known.map((one) => `"${one}"`))}.`);
  return found;
}

/** Milliseconds of the units with a fixed length. */
export const MS = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 7 * 86_400_000 };

/**
 * Reads the period of a request, which ends now unless it states an end.
 * @param defaultMs length of the period when the request gives no start, in milliseconds
 * @throws Failure `invalid_request` with `from` or `to`
 */
export function readPeriod(
  { startTime, endTime }: { startTime?: Timestamp | undefined; endTime?: Timestamp | undefined },
  defaultMs: number,
): { from: Date; to: Date } {
  const to = readTimestamp("to", endTime) ?? new Date();
  const from = readTimestamp("from", startTime) ?? nearestTime(to.getTime() - defaultMs);
  if (!(from < to)) throw invalid("from", "The period must have a start before its end.");
  return { from, to };
}

/** A part of a period that is summed up from rollups of one unit. */
interface Piece {
  unit: "minute" | "hour" | "day";
  start: Date;
  end: Date;
}

/**
 * Splits a period into parts with the longest units that fit: first the unit of the interval, then hours and minutes
 * for the end of the period.
 */
export function pieces(interval: Interval, from: Date, to: Date): Piece[] {
  const units = (["day", "hour", "minute"] as const).filter(
    (unit) => MS[unit] <= MS[interval === "month" ? "day" : interval],
  );
  let start = from;
  return units.flatMap((unit) => {
    const piece = { unit, start, end: startOf(unit, to) };
    if (piece.end <= start) return [];
    start = piece.end;
    return [piece];
  });
}

/** Start of the interval that contains a time, in UTC. */
export function startOf(interval: Interval, at: Date): Date {
  if (interval !== "month") return new Date(Math.floor(at.getTime() / MS[interval]) * MS[interval]);
  const start = startOf("day", at);
  start.setUTCDate(1);
  return start;
}

/** Start of the interval after the one that begins at `start`. */
export function next(unit: Interval | "week", start: Date): Date {
  if (unit !== "month") return new Date(start.getTime() + MS[unit]);
  const end = new Date(start);
  end.setUTCMonth(end.getUTCMonth() + 1);
  return end;
}

export function points(interval: Interval, from: Date, to: Date): number {
  if (interval !== "month") return Math.ceil((to.getTime() - from.getTime()) / MS[interval]);
  return (to.getUTCFullYear() - from.getUTCFullYear()) * 12 + to.getUTCMonth() - from.getUTCMonth() + 1;
}
