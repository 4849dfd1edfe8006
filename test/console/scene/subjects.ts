import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CapSchema } from "../../../gen/chorus/admin/v1/caps_pb.js";
import type { GetUsageResponseSchema, ListTopSubjectsResponseSchema } from "../../../gen/chorus/admin/v1/usage_pb.js";
import { CapAction, CapFigure, CapPeriod } from "../../../gen/chorus/v1/generation_pb.js";
import { HOUR, later } from "./clock.ts";
import { usage } from "./traffic.ts";

const NAMES = ["u-4711", "u-0815", "batch@nightly", "u-2042", "u-77", "u-1001", "u-1002"];
const share = (name: string) => 0.34 / (NAMES.indexOf(name) + 1) ** 1.4;

/** Users by what they used. */
export const top: MessageInitShape<typeof ListTopSubjectsResponseSchema> = {
  subjects: NAMES.map((subject) => ({
    subject,
    requests: BigInt(Math.round(18_895 * share(subject))),
    failedRequests: BigInt(Math.round(90 * share(subject))),
    inputTokens: BigInt(Math.round(11_563_740 * share(subject))),
    outputTokens: BigInt(Math.round(2_475_245 * share(subject))),
    credits: (51.2055 * share(subject)).toFixed(6),
  })),
  total: { requests: 18_895n, credits: "51.2055" },
  nextPageToken: "more",
};

/** The use of all requests, or the part of one user. */
export function usageOf(request: Record<string, unknown>): MessageInitShape<typeof GetUsageResponseSchema> {
  const { subject } = request;
  return usage(request, subject ? share(String(subject).slice("user:".length)) : 1);
}

const { CREDITS, REQUESTS, CONCURRENT_REQUESTS } = CapFigure;
const { DAY, MINUTE, MONTH } = CapPeriod;

/** Caps and a template, with every degree of use. */
export const caps: MessageInitShape<typeof CapSchema>[] = [
  { subject: "user:*", figure: CREDITS, period: DAY, amount: "5" },
  { subject: "user:*", figure: REQUESTS, period: MINUTE, amount: "60" },
  { subject: "user:u-0815", figure: CREDITS, period: DAY, amount: "5", used: "5" },
  { subject: "user:u-4711", figure: CREDITS, period: DAY, amount: "20", used: "17.4141", endsAt: later(9 * HOUR) },
  { subject: "user:u-4711", figure: CREDITS, period: MONTH, amount: "100", used: "51.2", action: CapAction.LOW },
  { subject: "user:u-77", figure: CONCURRENT_REQUESTS, amount: "4", used: "1" },
].map((cap, i) => ({ action: CapAction.REFUSE, ...cap, id: `cap_${i}` }));
