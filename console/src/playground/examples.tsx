import type { Draft } from "./draft.ts";

const EXAMPLES: readonly [title: string, draft: Partial<Draft>][] = [
  ["A question", { mode: "text", prompt: "Why is the sky blue, and the evening sky red? Answer in two sentences." }],
  [
    "JSON with the members that the prompt names",
    {
      mode: "extract",
      prompt:
        'Return JSON with the members "name", "city" and "day" (YYYY-MM-DD) of this message:\n\n' +
        "Hello, this is Ada. I arrive in Paris on 3 May 2027.",
    },
  ],
  [
    "JSON that is valid against a schema",
    {
      mode: "json_schema",
      prompt: "Read this invoice:\n\nInvoice 2026-117. Total: 249.90 EUR. Questions to billing@example.com",
    },
  ],
];

/** Requests to try. */
export function Examples({ use }: { use: (draft: Partial<Draft>) => void }) {
  return (
    <ul class="examples" aria-label="Examples to try">
      {EXAMPLES.map(([title, draft]) => (
        <li key={title}>
          <button type="button" class="small example" onClick={() => use({ input: "prompt", ...draft })}>
            {title}
          </button>
        </li>
      ))}
    </ul>
  );
}
