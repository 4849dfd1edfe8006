import { useState } from "preact/hooks";
import { AnswerShape, type Generation } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { Segments } from "../parts/segments.tsx";
import { Code } from "../playground/code.tsx";
import { type Draft, type EffortName, EMPTY } from "../playground/draft.ts";
import { snippet } from "../playground/snippets.ts";

const LANGUAGES = ["curl", "TypeScript", "Python", "OpenAI"] as const;
type Language = (typeof LANGUAGES)[number];

const PROMPT = "Your prompt, which is not kept";

/** Programs that send a request of the same kind again. The prompt is not kept, so a placeholder stands for it. */
export function Repeat({ generation }: { generation: Generation }) {
  const [language, setLanguage] = useState<Language>("curl");
  const draft = draftOf(generation);
  const text = language === "OpenAI" ? openai(draft) : snippet(language, draft, location.origin);
  return (
    <Card title="Send it again" class="snippet">
      <div class="toolbar">
        <Segments
          legend="Language"
          name="language"
          value={language}
          options={LANGUAGES.map((name) => [name, name])}
          change={setLanguage}
        />
        <Copy text={text} label={`Copy as ${language}`} />
      </div>
      <Code text={text} />
      <p class="help">
        <code>CHORUS_API_KEY</code> holds the secret of an API key. Put your prompt in place of the placeholder.
        {generation.shape === AnswerShape.JSON_SCHEMA &&
          " The schema is an example, because the one that was sent is not kept."}
      </p>
    </Card>
  );
}

function draftOf({ effort, shape }: Generation): Draft {
  const mode = shape === AnswerShape.JSON_SCHEMA ? "json_schema" : shape === AnswerShape.EXTRACT ? "extract" : "text";
  return { ...EMPTY, prompt: PROMPT, mode, effort: (wordOf(EffortSchema, effort) || "auto") as EffortName };
}

/** The effort is the name of a model in OpenAI's API. */
function openai({ effort, prompt }: Draft): string {
  const model = effort === "auto" ? "chorus" : `chorus-${effort}`;
  return `import os

from openai import OpenAI

client = OpenAI(base_url="${location.origin}/v1", api_key=os.environ["CHORUS_API_KEY"])
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": ${JSON.stringify(prompt)}}],
)
print(answer.choices[0].message.content)`;
}
