import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { MetricsInterval } from "../../../gen/chorus/v1/generation_pb.js";
import { day } from "../format.ts";
import { narrow } from "../route.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const SPANS: Record<string, { label: string; ms: number }> = {
  "24h": { label: "24 hours", ms: DAY },
  "7d": { label: "7 days", ms: 7 * DAY },
  "30d": { label: "30 days", ms: 30 * DAY },
};

export interface Period {
  /** `24h`, `7d`, `30d` or `range`. */
  readonly name: string;
  readonly from: Date;
  /** Exclusive; undefined: now. */
  readonly to: Date | undefined;
}

/** The period that an address names. @param standard used if it names none */
export function periodOf(query: URLSearchParams, standard = "24h"): Period {
  const from = new Date(`${query.get("from")}T00:00:00Z`);
  const last = new Date(`${query.get("to")}T00:00:00Z`);
  if (Number.isFinite(from.getTime()) && from <= last) {
    return { name: "range", from, to: new Date(last.getTime() + DAY) };
  }
  const requested = query.get("period") ?? "";
  const name = Object.hasOwn(SPANS, requested) ? requested : standard;
  // Rounded to minutes, so that the bounds stay equal between renders.
  const now = Math.floor(Date.now() / 60_000) * 60_000;
  return { name, from: new Date(now - (SPANS[name]?.ms ?? DAY)), to: undefined };
}

/** Start and end as fields of a request. */
export function boundsOf({ from, to }: Period) {
  return { startTime: timestampFromDate(from), ...(to ? { endTime: timestampFromDate(to) } : {}) };
}

/** Width of a point: an hour for periods of up to eight days, else a day. A chart then has about 200 points at most. */
export function intervalOf({ from, to = new Date() }: Period): { interval: MetricsInterval; ms: number } {
  return to.getTime() - from.getTime() <= 8 * DAY
    ? { interval: MetricsInterval.HOUR, ms: HOUR }
    : { interval: MetricsInterval.DAY, ms: DAY };
}

/** Chooses a period and stores it in the address. */
export function PeriodPicker({ period }: { period: Period }) {
  const { name, from, to = new Date() } = period;
  const first = day(from);
  const last = day(new Date(to.getTime() - 1));
  return (
    <div class="period">
      <fieldset class="segments">
        <legend class="hidden">Period</legend>
        {Object.entries(SPANS).map(([value, { label }]) => (
          <label key={value}>
            <input
              type="radio"
              name="period"
              checked={name === value}
              onChange={() => narrow({ period: value, from: undefined, to: undefined })}
            />
            {label}
          </label>
        ))}
        <label>
          <input
            type="radio"
            name="period"
            checked={name === "range"}
            onChange={() => narrow({ period: undefined, from: first, to: last })}
          />
          Range
        </label>
      </fieldset>
      {name === "range" && (
        <span class="range">
          <label>
            <span>First day</span>
            <input
              type="date"
              value={first}
              max={last}
              required
              onChange={(event) => narrow({ from: event.currentTarget.value || first })}
            />
          </label>
          <label>
            <span>Last day</span>
            <input
              type="date"
              value={last}
              min={first}
              required
              onChange={(event) => narrow({ to: event.currentTarget.value || last })}
            />
          </label>
        </span>
      )}
    </div>
  );
}
