import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Booking } from "../../../gen/chorus/admin/v1/credits_pb.js";
import { LimitNameSchema, type LimitOverrideSchema } from "../../../gen/chorus/admin/v1/workspaces_pb.js";
import { numberOf } from "../../../src/contract/json-names.ts";
import { amount, timeText } from "../format.ts";

/** Says what a booking did. */
export function bookingSentence(booking: Booking | undefined): string {
  if (!booking) return "";
  if (booking.bookedBefore) return `Booked before, at ${timeText(booking.at)}. Nothing was booked now.`;
  return `Booked ${amount(booking.amount)} credits.`;
}

/**
 * A change of a limit.
 * @param limit name of the limit
 * @param text a number, `none`, or `default` for the limit of the tier
 */
export function limitOverride(limit: string, text: string): MessageInitShape<typeof LimitOverrideSchema> {
  const name = numberOf(LimitNameSchema, limit);
  if (text === "none") return { name, change: { case: "unlimited", value: {} } };
  if (text === "default") return { name, change: { case: "reset", value: {} } };
  return { name, change: { case: "value", value: BigInt(text) } };
}
