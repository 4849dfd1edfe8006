import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useEffect, useState } from "preact/hooks";
import { MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
import { day, timeText } from "../format.ts";
import { narrow } from "../route.ts";
import { FilterChip } from "./filter-chip.tsx";
import { Segments } from "./segments.tsx";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SPANS: Record<string, { label: string; ms: number }> = {
  "24h": { label: "24 hours", ms: DAY },
  "7d": { label: "7 days", ms: 7 * DAY },
  "30d": { label: "30 days", ms: 30 * DAY },
};

/** Bounds of a period. A call cannot express times before the year 1, nor after 9999. */
const FIRST = Date.parse("0001-01-02T00:00:00Z");
const LAST = Date.parse("9999-12-31T00:00:00Z");

export interface Period {
  /** `24h`, `7d`, `30d`, `range` of days, or `times`: a part that was chosen in a chart. */
  readonly name: string;
  /** Of a period that ends now, it moves on while the page is open. */
  readonly from: Date;
  /** Exclusive; undefined: now. */
  readonly to: Date | undefined;
  /** Identifies the period in the address. */
  readonly key: string;
}

/** The period that an address names. @param standard used if it names none */
export function periodOf(query: URLSearchParams, standard = "24h"): Period {
  const [first, last] = [query.get("from") ?? "", query.get("to") ?? ""];
  const key = `${query.get("period") ?? standard} ${first} ${last}`;
  const isDays = first.length === 10;
  const from = new Date(isDays ? `${first}T00:00:00Z` : first);
  const to = new Date(isDays ? `${last}T00:00:00Z` : last);
  const end = isDays ? new Date(to.getTime() + DAY) : to;
  if (from.getTime() >= FIRST && from < end && end.getTime() <= LAST) {
    return { name: isDays ? "range" : "times", from, to: end, key };
  }
  const requested = query.get("period") ?? "";
  const name = Object.hasOwn(SPANS, requested) ? requested : standard;
  const ms = SPANS[name]?.ms ?? DAY;
  return {
    name,
    get from() {
      // Rounded to minutes, so that the bounds stay equal between renders.
      return new Date(Math.floor(Date.now() / 60_000) * 60_000 - ms);
    },
    to: undefined,
    key,
  };
}

/** Interval at which the figures of a previous period are loaded again, in milliseconds. */
export const PREVIOUS_MS = 300_000;

/** The period of the same length that ends where this one starts. */
export function previousOf(period: Period): Period {
  return {
    name: "times",
    get from() {
      const { from, to = new Date() } = period;
      return new Date(Math.max(FIRST - DAY, 2 * from.getTime() - to.getTime()));
    },
    get to() {
      return period.from;
    },
    key: `before ${period.key}`,
  };
}

/** A period, or the end of one that is longer than some days. */
export function cutTo(days: number, period: Period): Period {
  const { name, from, to, key } = period;
  if (!to || to.getTime() - from.getTime() <= days * DAY) return period;
  return { name, from: new Date(to.getTime() - days * DAY), to, key };
}

/** A period as it is now, for a file of many pages. */
export function still({ name, from, to, key }: Period): Period {
  return { name, from, to, key };
}

/** Start and end as fields of a request. */
export function boundsOf({ from, to }: Period) {
  return { startTime: timestampFromDate(from), ...(to ? { endTime: timestampFromDate(to) } : {}) };
}

/** A period as parts of the address of another page. */
export function spanOf({ name, from, to }: Period): Record<string, string> {
  if (to === undefined) return { period: name };
  if (name === "range") return { from: day(from), to: day(new Date(to.getTime() - 1)) };
  return { from: from.toISOString(), to: to.toISOString() };
}

/** Width of a point: an hour for periods of up to eight days, else a day. A chart then has about 200 points at most. */
export function intervalOf({ from, to = new Date() }: Period): { interval: MetricsInterval; ms: number } {
  return to.getTime() - from.getTime() <= 8 * DAY
    ? { interval: MetricsInterval.HOUR, ms: HOUR }
    : { interval: MetricsInterval.DAY, ms: DAY };
}

/** Shows the part of the period that was selected in a chart. The address then has times instead of days. */
export function zoomTo(from: Date, to: Date): void {
  narrow({ from: `${from.toISOString().slice(0, 16)}Z`, to: `${to.toISOString().slice(0, 16)}Z` });
}

/**
 * Chooses a period and stores it in the address.
 * @param mostDays of a range; where one end would make it longer, the other one moves along
 */
export function PeriodPicker({ period, mostDays = Number.POSITIVE_INFINITY }: { period: Period; mostDays?: number }) {
  const { name, from, to = new Date() } = period;
  const first = day(from);
  const last = day(new Date(to.getTime() - 1));
  const spans = Object.entries(SPANS).map(([value, { label }]) => [value, label] as const);
  const longest = (mostDays - 1) * DAY;
  const choose = (value: string) =>
    narrow(
      value === "range"
        ? { period: undefined, from: first, to: last }
        : { period: value, from: undefined, to: undefined },
    );
  return (
    <div class="period">
      <Segments legend="Period" name="period" value={name} options={[...spans, ["range", "Range"]]} change={choose} />
      {name === "range" && (
        <span class="range">
          <Day
            label="First day"
            required
            value={first}
            max={last}
            change={(from) => narrow({ from, to: dayOf(Math.min(Date.parse(last), Date.parse(from) + longest)) })}
          />
          <span class="soft">to</span>
          <Day
            label="Last day"
            required
            value={last}
            min={first}
            change={(to) => narrow({ from: dayOf(Math.max(Date.parse(first), Date.parse(to) - longest)), to })}
          />
        </span>
      )}
      {name === "times" && (
        <FilterChip label="Show the whole period" remove={() => narrow({ from: undefined, to: undefined })}>
          {timeText(from).slice(0, 16)} to {timeText(to).slice(first === last ? 11 : 0, 16)}
        </FilterChip>
      )}
    </div>
  );
}

function dayOf(ms: number): string {
  return day(new Date(ms));
}

interface DayProps {
  label: string;
  value: string;
  min?: string;
  max?: string;
  /** Whether it cannot be emptied. */
  required?: boolean;
  change: (value: string) => void;
}

/** No data are older. Without it, a year would count while its first digits are typed: 0002 on the way to 2026. */
const FIRST_DAY = "2000-01-01";

/** The service takes no times after the day that follows. Without it, a fifth digit of a year would count. */
export const LAST_DAY = "9999-12-30";

/** A day as a field, in the form 2026-01-31; empty for none. A day outside of the bounds changes nothing. */
export function Day({ label, value, min = FIRST_DAY, max = LAST_DAY, change, ...rest }: DayProps) {
  // What is typed, which outlives the draws of the page.
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  return (
    <input
      type="date"
      aria-label={label}
      value={text}
      min={min}
      max={max}
      {...rest}
      onInput={({ currentTarget: field }) => {
        setText(field.value);
        if (field.validity.valid) change(field.value);
      }}
      onBlur={() => setText(value)}
    />
  );
}
