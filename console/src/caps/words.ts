import { CapFigure, CapPeriod, CapPeriodSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { amount, count } from "../format.ts";

const FIGURES: Partial<Record<CapFigure, string>> = {
  [CapFigure.CREDITS]: "Credits",
  [CapFigure.REQUESTS]: "Requests",
  [CapFigure.INPUT_TOKENS]: "Input tokens",
  [CapFigure.OUTPUT_TOKENS]: "Output tokens",
  [CapFigure.CONCURRENT_REQUESTS]: "Requests at a time",
};

/** What a cap limits, such as "Credits a day". */
export function nameOf(figure: CapFigure, period: CapPeriod | undefined): string {
  const name = FIGURES[figure] ?? "";
  if (!period) return name;
  return period === CapPeriod.TOTAL ? `${name} in all` : `${name} a ${wordOf(CapPeriodSchema, period)}`;
}

/** An amount of a cap or of its use. */
export function amountOf(figure: CapFigure, value: string | number): string {
  return figure === CapFigure.CREDITS ? amount(value) : count(Number(value));
}
