import { directionOf } from "../direction.ts";
import { Choice } from "../parts/choice.tsx";
import { Field } from "../parts/field.tsx";
import { Segments } from "../parts/segments.tsx";
import { canContinue, type Draft, type DraftFile, type Mode } from "./draft.ts";
import { FileList } from "./files.tsx";
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

const EFFORTS = (["auto", "low", "medium", "high"] as const).map((name) => [name, name] as const);

const MOST_STOPS = 4;

interface OptionsProps extends Props {
  /** Adds files. */
  attach: (files: readonly DraftFile[]) => void;
  /** Whether two efforts are compared. */
  compares: boolean;
}

/** All options of a request besides the prompt. */
export function Options({ draft, change, attach, compares }: OptionsProps) {
  const { mode, schema, files, webSearch, continues } = draft;
  return (
    <>
      <FileList files={files} add={attach} change={(next) => change({ files: next })} />
      <Segments
        titled
        legend="Answer as"
        name="mode"
        value={mode}
        options={MODES}
        change={(next) => change({ mode: next })}
      />
      {mode === "extract" && (
        <p class="help">The prompt describes the members of the object. The service does not check them.</p>
      )}
      {mode === "json_schema" && <SchemaEditor schema={schema} change={(next) => change({ schema: next })} />}
      <Knobs draft={draft} change={change} compares={compares} />
      <div class="checks">
        <label class="check">
          <input
            type="checkbox"
            checked={webSearch}
            onChange={(event) => change({ webSearch: event.currentTarget.checked })}
          />
          Search the web
        </label>
        {canContinue(draft) && (
          <label class="check">
            <input
              type="checkbox"
              checked={continues}
              onChange={(event) => change({ continues: event.currentTarget.checked })}
            />
            Continue the last message
          </label>
        )}
      </div>
      <More draft={draft} change={change} />
    </>
  );
}

function Knobs({ draft: { effort, temperature, maxTokens }, change, compares }: Props & { compares: boolean }) {
  return (
    <div class="knobs">
      {!compares && (
        <Choice
          id="effort"
          label="Highest effort"
          value={effort}
          options={EFFORTS}
          change={(name) => change({ effort: name })}
        />
      )}
      <Field id="temperature" label="Temperature">
        <input
          id="temperature"
          type="number"
          min={0}
          max={2}
          step="any"
          placeholder="0.0 to 2.0"
          value={temperature}
          onInput={(event) => change({ temperature: event.currentTarget.value })}
        />
      </Field>
      <Field id="max-tokens" label="Max tokens">
        <input
          id="max-tokens"
          type="number"
          min={1}
          max={32000}
          step={1}
          placeholder="32000"
          value={maxTokens}
          onInput={(event) => change({ maxTokens: event.currentTarget.value })}
        />
      </Field>
    </div>
  );
}

/** Options that are used less often, in a section that opens. */
function More({ draft: { mode, system, stops }, change }: Props) {
  const used = (system ? 1 : 0) + stops.filter(Boolean).length;
  return (
    <details class="options-more">
      <summary>System instructions, stop sequences{used > 0 && ` (${used})`}</summary>
      <Field id="system" label="System">
        <textarea
          id="system"
          dir={directionOf(system)}
          rows={2}
          placeholder="Instructions: persona, tone, format"
          value={system}
          onInput={(event) => change({ system: event.currentTarget.value })}
        />
      </Field>
      {mode === "json_schema" ? (
        <p class="help">Stop sequences cannot be combined with a schema.</p>
      ) : (
        <fieldset class="field">
          <legend>Stop sequences</legend>
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
    </details>
  );
}

function replaced(stops: readonly string[], i: number, value: string): string[] {
  const next = [...stops];
  next[i] = value;
  while (next.at(-1) === "") next.pop();
  return next;
}
