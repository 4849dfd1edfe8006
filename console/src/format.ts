import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";

const WHOLE = new Intl.NumberFormat("en");
const SHORT = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** A count with thousands separators. */
export function count(value: number | bigint): string {
  return WHOLE.format(value);
}

/** A count with its noun: "1 request", "2,000 requests". */
export function counted(value: number, noun: string): string {
  return `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
}

/** A count or an amount in short form, such as 1.2K. @param step distance of the marks of an axis: all look alike */
export function short(value: number, step?: number): string {
  if (Math.abs(value) >= 1000) return SHORT.format(value);
  return step === undefined ? String(Number(value.toPrecision(3))) : value.toFixed(decimalsOf(step));
}

/** Decimals that a number needs, up to six. */
export function decimalsOf(number: number): number {
  return Number(number.toFixed(6)).toString().split(".")[1]?.length ?? 0;
}

/** An exact decimal amount of credits with thousands separators and without trailing zeros. */
export function amount(value: string | number): string {
  const text = typeof value === "number" ? value.toFixed(6) : value;
  const [, sign = "", whole = "0", fraction = ""] = /^(-?)(\d+)(?:\.(\d+))?/.exec(text) ?? [];
  const decimals = fraction.replace(/0+$/, "");
  const isZero = /^0*$/.test(whole + decimals);
  return `${isZero ? "" : sign.replace("-", "−")}${count(BigInt(whole))}${decimals && `.${decimals}`}`;
}

/** A rounded amount for headlines: two decimals from 100, four below. */
export function roundAmount(value: string | number): string {
  const number = Number(value);
  const maximumFractionDigits = Math.abs(number) >= 100 ? 2 : 4;
  // An amount that is rounded to zero has no sign.
  return new Intl.NumberFormat("en", { maximumFractionDigits, signDisplay: "negative" }).format(number);
}

/** An amount for a table column, with aligned decimal points. @param decimals 4, or 6 for exact amounts */
export function columnAmount(value: string | number, decimals: 4 | 6 = 4): string {
  return new Intl.NumberFormat("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals })
    .format(Number(value))
    .replace("-", "−");
}

/** A share of 0 to 1 as a percentage with one decimal. */
export function percent(share: number): string {
  return `${(share * 100).toFixed(1).replace("-", "−")} %`;
}

/** A duration. @param ms milliseconds */
export function duration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  const s = ms / 1000;
  if (s < 60) return `${Number(s.toPrecision(s < 10 ? 2 : 3))} s`;
  const seconds = Math.round(s);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  const minutes = Math.round(s / 60);
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.round(s / 86_400)} days`;
}

/**
 * A time in UTC, to the second: 2026-03-14 09:26:53. Limits and statements count in UTC, so the console shows only UTC.
 */
export function timeText(at: Timestamp | Date | undefined): string {
  return at === undefined ? "" : iso(at).slice(0, 19).replace("T", " ");
}

/** How long ago a time was, such as "3 hours ago"; "just now" within a minute. */
export function ago(at: Timestamp): string {
  const minutes = (Date.now() - timestampDate(at).getTime()) / 60_000;
  if (minutes < 1) return "just now";
  const [value, unit] =
    minutes < 90
      ? [minutes, "minute" as const]
      : minutes < 2880
        ? [minutes / 60, "hour" as const]
        : [minutes / 1440, "day" as const];
  return AGO.format(-Math.round(value), unit);
}

const AGO = new Intl.RelativeTimeFormat("en");

/** A day in UTC: 2026-03-14. */
export function day(at: Timestamp | Date | undefined): string {
  return at === undefined ? "" : iso(at).slice(0, 10);
}

/** A time for CSV files, with milliseconds. */
export function iso(at: Timestamp | Date): string {
  return (at instanceof Date ? at : timestampDate(at)).toISOString();
}

/** `key.create` or `caller_gone` as words. */
export function words(name: string): string {
  return name.replace(/[_.]/g, " ");
}
