import { AnswerShape, type Generation } from "../../../gen/chorus/admin/v1/activity_pb.js";
import { EffortSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { type Draft, type EffortName, EMPTY } from "../playground/draft.ts";
import { Snippets } from "../playground/snippet-panel.tsx";
import { snippet } from "../playground/snippets.ts";

const LANGUAGES = ["curl", "TypeScript", "Python", "OpenAI"] as const;

const PROMPT = "Your prompt";

/** Programs that send a request of the same kind again, with a placeholder for its prompt. */
export function Repeat({ generation }: { generation: Generation }) {
  const draft = draftOf(generation);
  return (
    <Snippets
      title="Send it again"
      languages={LANGUAGES}
      textOf={(language) => (language === "OpenAI" ? openai(draft) : snippet(language, draft, location.origin))}
      help={() => (
        <>
          {" Put your prompt in place of the placeholder."}
          {generation.shape === AnswerShape.JSON_SCHEMA &&
            " The schema is an example, because the one that was sent is not kept."}
        </>
      )}
    />
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
