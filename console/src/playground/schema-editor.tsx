import { refusalOf } from "./schema-check.ts";

/** Edits a JSON Schema; the line that the service would refuse is marked while typing. */
export function SchemaEditor({ schema, change }: { schema: string; change: (schema: string) => void }) {
  const refusal = refusalOf(schema);
  const lines = schema.split("\n");
  return (
    <div class="schema">
      <label for="schema">JSON Schema of the answer</label>
      <div class="editor">
        <div class="back" aria-hidden="true">
          {lines.map((line, i) => (
            // A line is its number
            <div key={i} class={refusal?.line === i + 1 ? "wrong" : ""}>
              {line || " "}
            </div>
          ))}
        </div>
        <textarea
          id="schema"
          spellcheck={false}
          autocomplete="off"
          value={schema}
          onInput={(event) => change(event.currentTarget.value)}
          aria-invalid={refusal !== undefined}
          aria-describedby="schema-state"
        />
      </div>
      <p id="schema-state" role="status" class={refusal ? "refused" : "accepted"}>
        {refusal ? (
          <>
            Line {refusal.line}
            {refusal.path && (
              <>
                {" "}
                (<code>{refusal.path}</code>)
              </>
            )}
            : {refusal.message}
          </>
        ) : (
          "The service accepts this schema."
        )}
      </p>
    </div>
  );
}
