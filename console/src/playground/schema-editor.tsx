import { schemaProblem } from "./schema-check.ts";

/** Edits a JSON Schema and marks the line that the service would refuse. */
export function SchemaEditor({ schema, change }: { schema: string; change: (schema: string) => void }) {
  const problem = schemaProblem(schema);
  const lines = schema.split("\n");
  return (
    <div class="field">
      <label for="schema">JSON Schema of the answer</label>
      <div class="editor">
        <div class="back" aria-hidden="true">
          {lines.map((line, i) => (
            // The index identifies a line
            <div key={i} class={problem?.line === i + 1 ? "wrong" : ""}>
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
          aria-invalid={problem !== undefined}
          aria-describedby="schema-state"
        />
      </div>
      <p id="schema-state" role="status" class={problem ? "refused" : "accepted"}>
        {problem ? (
          <>
            Line {problem.line}
            {problem.path && (
              <>
                {" "}
                (<code>{problem.path}</code>)
              </>
            )}
            : {problem.message}
          </>
        ) : (
          "The service accepts this schema."
        )}
      </p>
    </div>
  );
}
