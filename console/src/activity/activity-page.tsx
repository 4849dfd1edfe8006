import { useState } from "preact/hooks";
import { ExportButton } from "../parts/export-button.tsx";
import { KeyFilter } from "../parts/key-filter.tsx";
import { PeriodPicker, periodOf } from "../parts/period.tsx";
import { narrow, useRoute } from "../route.ts";
import { exportGenerations, type Filter } from "./find.ts";
import { GenerationList } from "./generation-list.tsx";

const OUTCOMES = [
  ["", "Any"],
  ["ok", "Answered"],
  ["failed", "Failed, any code"],
  ["cut_short", "Cut short"],
  ["caller_gone", "Caller gone"],
  ["upstream_failed", "upstream_failed"],
  ["structured_output_failed", "structured_output_failed"],
  ["timed_out", "timed_out"],
  ["overloaded", "overloaded"],
  ["internal", "internal"],
] as const;

const LEVELS = ["", "low", "medium", "high"];

/** Lists admitted requests. Prompts and answers are not stored. */
export function ActivityPage() {
  const { query } = useRoute();
  const [keyName, setKeyName] = useState("");
  const period = periodOf(query, "7d");
  const filter: Filter = {
    period,
    keyId: query.get("key") ?? "",
    outcome: query.get("outcome") ?? "",
    level: query.get("level") ?? "",
  };
  const of = JSON.stringify([
    period.name,
    query.get("from"),
    query.get("to"),
    filter.keyId,
    filter.outcome,
    filter.level,
  ]);
  return (
    <>
      <h1 tabIndex={-1}>Activity</h1>
      <p class="lead">
        Admitted requests, newest first. Prompts and answers are not stored. Refused requests (rate limit, too little
        credit, invalid request, revoked key) are not listed.
      </p>
      <div class="toolbar">
        <PeriodPicker period={period} />
        <KeyFilter keyId={filter.keyId} keyName={keyName} />
        <label>
          <span>Ended</span>
          <select value={filter.outcome} onChange={(event) => narrow({ outcome: event.currentTarget.value })}>
            {OUTCOMES.map(([value, label]) => (
              <option key={value} value={value}>
                {label}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Level</span>
          <select value={filter.level} onChange={(event) => narrow({ level: event.currentTarget.value })}>
            {LEVELS.map((level) => (
              <option key={level} value={level}>
                {level || "Any"}
              </option>
            ))}
          </select>
        </label>
        <ExportButton label="Export as CSV" run={(progress, signal) => exportGenerations(filter, progress, signal)} />
      </div>
      <GenerationList
        key={of}
        filter={filter}
        onFound={({ generations }) => setKeyName(generations[0]?.keyName ?? "")}
      />
    </>
  );
}
