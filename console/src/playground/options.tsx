import type { Draft, EffortName, Mode } from "./draft.ts";
import { Files } from "./files.tsx";
import { SchemaEditor } from "./schema-editor.tsx";

interface Props {
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
}

const MODES: [Mode, string][] = [
  ["text", "Text"],
  ["extract", "Extract JSON"],
  ["json_schema", "Strict JSON"],
];

const MOST_STOPS = 4;

/** All options of a request besides the prompt. */
export function Options({ draft, change }: Props) {
  const { mode, schema } = draft;
  return (
    <>
      <fieldset class="segments">
        <legend>Answer as</legend>
        {MODES.map(([name, title]) => (
          <label key={name}>
            <input type="radio" name="mode" checked={mode === name} onChange={() => change({ mode: name })} />
            {title}
          </label>
        ))}
      </fieldset>
      {mode === "extract" && (
        <p class="help">The prompt describes the members of the object. The service does not check them.</p>
      )}
      {mode === "json_schema" && <SchemaEditor schema={schema} change={(next) => change({ schema: next })} />}
      <Knobs draft={draft} change={change} />
      <More draft={draft} change={change} />
    </>
  );
}

function Knobs({ draft: { effort, temperature, maxTokens }, change }: Props) {
  return (
    <div class="knobs">
      <label>
        <span>Effort, at most</span>
        <select value={effort} onChange={(event) => change({ effort: event.currentTarget.value as EffortName })}>
          {["auto", "low", "medium", "high"].map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <label>
        <span>Temperature</span>
        <input
          type="number"
          min={0}
          max={2}
          step="any"
          placeholder="0.0 to 2.0"
          value={temperature}
          onInput={(event) => change({ temperature: event.currentTarget.value })}
        />
      </label>
      <label>
        <span>Tokens, at most</span>
        <input
          type="number"
          min={1}
          max={32000}
          step={1}
          placeholder="32000"
          value={maxTokens}
          onInput={(event) => change({ maxTokens: event.currentTarget.value })}
        />
      </label>
    </div>
  );
}

/** Options that are used less often, in a section that opens. */
function More({ draft: { mode, system, stops, files }, change }: Props) {
  return (
    <details>
      <summary>System, stops, attachments{tally([system && 1, stops.filter(Boolean).length, files.length])}</summary>
      <label for="system">System</label>
      <textarea
        id="system"
        rows={2}
        placeholder="Instructions: persona, tone, format"
        value={system}
        onInput={(event) => change({ system: event.currentTarget.value })}
      />
      {mode === "json_schema" ? (
        <p class="help">Stop sequences cannot be combined with a schema.</p>
      ) : (
        <fieldset>
          <legend>The answer ends before</legend>
          <div class="stops">
            {Array.from({ length: Math.min(MOST_STOPS, stops.length + 1) }, (_, i) => (
              <input
                // The index identifies a stop sequence
                key={i}
                type="text"
                maxLength={1000}
                aria-label={`Stop sequence ${i + 1}`}
                value={stops[i] ?? ""}
                onInput={(event) => change({ stops: replaced(stops, i, event.currentTarget.value) })}
              />
            ))}
          </div>
        </fieldset>
      )}
      <Files files={files} change={(next) => change({ files: next })} />
    </details>
  );
}

function tally(counts: (number | string)[]): string {
  const sum = counts.reduce<number>((total, one) => total + Number(one), 0);
  return sum > 0 ? ` (${sum})` : "";
}

function replaced(stops: readonly string[], i: number, value: string): string[] {
  const next = [...stops];
  next[i] = value;
  while (next.at(-1) === "") next.pop();
  return next;
}
