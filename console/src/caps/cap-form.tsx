import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import type { CapSchema } from "../../../gen/chorus/admin/v1/caps_pb.js";
import { CapActionSchema, CapFigureSchema, CapPeriodSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { numberOf } from "../../../src/contract/json-names.ts";
import { Choice } from "../parts/choice.tsx";
import { FormDialog } from "../parts/form-dialog.tsx";
import { Segments } from "../parts/segments.tsx";
import { CREDITS, TextField } from "../parts/text-field.tsx";
import { caps } from "../rpc.ts";

const FIGURES = [
  ["credits", "Credits"],
  ["requests", "Requests"],
  ["input_tokens", "Input tokens"],
  ["output_tokens", "Output tokens"],
  ["concurrent_requests", "Requests at a time"],
] as const;

const PERIODS = [
  ["minute", "Minute"],
  ["day", "Day"],
  ["week", "Week, from Monday"],
  ["month", "Month"],
  ["total", "All time"],
] as const;

const HOUR = 3_600_000;

/** Hours until the cap ends. */
const ENDS = [
  ["", "Never"],
  ["1", "In an hour"],
  ["24", "In a day"],
  ["168", "In a week"],
] as const;

const ACTIONS = [
  ["refuse", "Refuse requests"],
  ["low", "Answer with low effort"],
] as const;

const WHOLE = { pattern: "\\d{1,13}", title: "A whole number" };

interface Props {
  /** Such as `user:u-4711`; with `*` in place of the last part for each of them. */
  subject: string;
  /** The subject in words, such as "each user". */
  whose: string;
  close: () => void;
  done: (sentence: string) => void;
}

/** What the form holds, as texts. */
interface Draft {
  readonly figure: string;
  readonly period: string;
  readonly amount: string;
  readonly action: "refuse" | "low";
  /** How long the cap lasts; empty for a cap without an end. */
  readonly hours: string;
}

const NEW: Draft = { figure: "credits", period: "day", amount: "", action: "refuse", hours: "" };

/** Sets a cap, or replaces the one of the same figure, period and action. */
export function SetCap({ subject, whose, close, done }: Props) {
  const [draft, setDraft] = useState(NEW);
  const submit = async () => {
    await caps.setCap({ cap: capOf(subject, draft) });
    done("Set the cap. It holds within a second.");
  };
  return (
    <FormDialog title={`Set a cap for ${whose}`} close={close} submit={submit} action="Set the cap">
      <Fields draft={draft} edit={(changes) => setDraft((before) => ({ ...before, ...changes }))} />
    </FormDialog>
  );
}

function capOf(subject: string, { figure, period, amount, action, hours }: Draft): MessageInitShape<typeof CapSchema> {
  return {
    subject,
    amount: amount.trim(),
    figure: numberOf(CapFigureSchema, figure),
    action: numberOf(CapActionSchema, action),
    ...(figure === "concurrent_requests" ? {} : { period: numberOf(CapPeriodSchema, period) }),
    ...(hours === "" ? {} : { endsAt: timestampFromDate(new Date(Date.now() + Number(hours) * HOUR)) }),
  };
}

function Fields({ draft, edit }: { draft: Draft; edit: (changes: Partial<Draft>) => void }) {
  const { figure, period, amount, action, hours } = draft;
  return (
    <>
      <Choice id="cap-figure" label="Figure" value={figure} options={FIGURES} change={(one) => edit({ figure: one })} />
      {figure !== "concurrent_requests" && (
        <Choice
          id="cap-period"
          label="Period, UTC"
          value={period}
          options={PERIODS}
          change={(one) => edit({ period: one })}
        />
      )}
      <TextField
        id="cap-amount"
        label="Amount"
        help="The most that may be used. A cap of the same figure and period is replaced."
        inputMode="decimal"
        required
        data-autofocus
        {...(figure === "credits" ? CREDITS : WHOLE)}
        value={amount}
        change={(text) => edit({ amount: text })}
      />
      <Segments
        legend="When it is used up"
        titled
        name="cap-action"
        value={action}
        options={ACTIONS}
        change={(one) => edit({ action: one })}
      />
      <Choice
        id="cap-end"
        label="Ends"
        help="Until a cap ends, it comes before the one without an end."
        value={hours}
        options={ENDS}
        change={(one) => edit({ hours: one })}
      />
    </>
  );
}
