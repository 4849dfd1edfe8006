import { useState } from "preact/hooks";
import { ExportButton } from "../parts/export-button.tsx";
import { FilterChip } from "../parts/filter-chip.tsx";
import { FilterChoice } from "../parts/filter-choice.tsx";
import { KeyFilter } from "../parts/key-filter.tsx";
import { PageHead } from "../parts/page-head.tsx";
import { PeriodPicker, periodOf } from "../parts/period.tsx";
import { narrow, useRoute } from "../route.ts";
import { exportGenerations, type Filter } from "./find.ts";
import { GenerationList } from "./generation-list.tsx";
import { TextSetting } from "./text-setting.tsx";

const OUTCOMES = [
  ["", "Any outcome"],
  ["ok", "Answered"],
  ["failed", "Failed, any code"],
  ["cut_short", "Cut short"],
  ["caller_gone", "Caller gone"],
  ["upstream_failed", "upstream_failed"],
  ["structured_output_failed", "structured_output_failed"],
  ["content_refused", "content_refused"],
  ["request_too_long", "request_too_long"],
  ["timed_out", "timed_out"],
  ["overloaded", "overloaded"],
  ["internal", "internal"],
] as const;

const LEVELS = [
  ["", "Any level"],
  ["low", "Low"],
  ["medium", "Medium"],
  ["high", "High"],
] as const;

/** Lists admitted requests. Their text, where it is kept, is on the pages of their runs. */
export function ActivityPage() {
  const { query } = useRoute();
  const [keyName, setKeyName] = useState("");
  const period = periodOf(query, "7d");
  const filter: Filter = {
    period,
    keyId: query.get("key") ?? "",
    outcome: query.get("outcome") ?? "",
    level: query.get("level") ?? "",
    user: query.get("user") ?? "",
    tag: query.get("tag") ?? "",
  };
  return (
    <>
      <PageHead title="Activity" lead="Admitted requests, without their text. Refused requests are not listed.">
        <TextSetting />
        <ExportButton label="Export as CSV" run={(progress, signal) => exportGenerations(filter, progress, signal)} />
      </PageHead>
      <div class="toolbar">
        <PeriodPicker period={period} />
        <KeyFilter keyId={filter.keyId} keyName={keyName} />
        {filter.user && (
          <FilterChip label="Remove the filter: User" remove={() => narrow({ user: undefined })}>
            User: <strong>{filter.user}</strong>
          </FilterChip>
        )}
        {filter.tag && (
          <FilterChip label="Remove the filter: Tag" remove={() => narrow({ tag: undefined })}>
            Tag: <strong>{filter.tag}</strong>
          </FilterChip>
        )}
        <FilterChoice
          label="Outcome"
          value={filter.outcome}
          options={outcomesWith(filter.outcome)}
          change={(outcome) => narrow({ outcome })}
        />
        <FilterChoice label="Level" value={filter.level} options={LEVELS} change={(level) => narrow({ level })} />
      </div>
      <GenerationList
        key={JSON.stringify([period.key, { ...filter, period: undefined }])}
        filter={filter}
        opened={query.get("request") ?? ""}
        onFound={({ generations }) => setKeyName(generations[0]?.keyName ?? "")}
      />
    </>
  );
}

/** The outcomes to choose from. A link can lead to a code that is none of the usual ones. */
function outcomesWith(chosen: string): readonly (readonly [value: string, label: string])[] {
  return OUTCOMES.some(([outcome]) => outcome === chosen) ? OUTCOMES : [...OUTCOMES, [chosen, chosen]];
}
