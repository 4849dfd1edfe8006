import type { ModelEntry } from "../port/entry.ts";
import type { Message } from "../port/model.ts";
import { choiceFields, dataUrl, LEAST, openai, toolText } from "./openai.ts";
import { readEvent, readWhole } from "./responses-reply.ts";
import { SCHEMA_FORMS, type WireCall, type WireFormat, withRawMember } from "./wire.ts";

/** Smallest ceiling of the output that OpenAI takes in this API, in tokens. */
const MIN_OUTPUT = 16;

/**
 * OpenAI's Responses API, in which models reason in calls with tools. docs/reference/wire-formats.md lists every field
 * and event that is read.
 */
export const responses: WireFormat = {
  ...openai,
  api: "responses",
  // It has no stop sequences. format: the schema, any JSON. reasoning: efforts that stand for `none`.
  forms: {
    ...{ temperature: 1, stops: 0, maxTokens: 1, format: SCHEMA_FORMS + 1, reasoning: 3, cacheKey: 1, usage: 0 },
    ...{ strictTools: 1, toolChoice: 1, parallel: 1, toolReasoning: 0, toolFormat: 0, toolTurn: 0, system: 0 },
    ...{ thoughts: 0, signature: 0 },
  },
  optionNames: {
    ...openai.optionNames,
    maxTokens: /\bmax_?(?:output_?|completion_?)?tokens\b/i,
    format: /\btext\.format\b|\bresponse_?format\b|\bjson_(object|schema)\b/i,
  },

  request(entry, call, forms) {
    const { format, tools, reasoning } = call;
    const fields = {
      model: call.model,
      input: input(call, entry),
      // The vendor would keep prompts and answers.
      store: false,
      ...(call.streamed ? { stream: true } : {}),
      ...(call.temperature !== undefined && forms.temperature === 0 ? { temperature: call.temperature } : {}),
      ...(call.maxTokens !== undefined && forms.maxTokens === 0
        ? { max_output_tokens: Math.max(MIN_OUTPUT, call.maxTokens) }
        : {}),
      ...(reasoning !== undefined && forms.reasoning < 3
        ? { reasoning: { effort: reasoning === "none" ? LEAST.openai[forms.reasoning] : reasoning } }
        : {}),
      ...(call.cacheKey !== undefined && forms.cacheKey === 0 && entry.vendor === "openai"
        ? { prompt_cache_key: call.cacheKey }
        : {}),
      ...(tools ? choiceFields(tools, forms, (name) => ({ name })) : {}),
      ...(format?.type === "json" && forms.format <= SCHEMA_FORMS ? { text: { format: { type: "json_object" } } } : {}),
    };
    const plain = JSON.stringify(fields);
    // A tool without `strict` would be changed into one of the strict mode, in which all arguments are required.
    const definitions = tools?.list.map((tool) => {
      const text = toolText(tool, tool.strict && entry.vendor === "openai", entry);
      return `{"type":"function",${text.slice(1)}`;
    });
    const body = definitions ? withRawMember(plain, "tools", `[${definitions.join(",")}]`) : plain;
    return {
      path: "/responses",
      body: format?.type === "schema" ? withRawMember(body, "text", textFormat(format.schema, format.strict)) : body,
    };
  },

  readEvent,
  readWhole,
};

/**
 * The instructions are a message, because words of `instructions` do not count where OpenAI demands the word JSON in
 * the input, and not all servers take that field.
 */
function input({ prompt: { system, messages } }: WireCall, { vendor }: ModelEntry): unknown[] {
  const instructions = { type: "message", role: "system", content: [{ type: "input_text", text: system }] };
  const items = messages.flatMap((message, at) => [
    ...(message.results ?? []).map(({ id, text }) => ({ type: "function_call_output", call_id: id, output: text })),
    ...(message.role === "user" ? asked(message) : answered(message, vendor === "openai" ? undefined : at)),
    ...(message.calls ?? []).map(({ id, ...called }) => ({ type: "function_call", call_id: id, ...called })),
  ]);
  return system === "" ? items : [instructions, ...items];
}

function asked({ role, text, images = [] }: Message): unknown[] {
  const content = [
    ...images.map((image) => ({ type: "input_image", image_url: dataUrl(image), detail: "auto" })),
    ...(text === "" ? [] : [{ type: "input_text", text }]),
  ];
  return content.length === 0 ? [] : [{ type: "message", role, content }];
}

/** @param at place of the message, where it has the form of an output, which some servers demand */
function answered({ role, text }: Message, at: number | undefined): unknown[] {
  if (text === "") return [];
  if (at === undefined) return [{ type: "message", role, content: text }];
  const content = [{ type: "output_text", text, annotations: [] }];
  return [{ type: "message", id: `msg_${at}`, status: "completed", role, content }];
}

function textFormat(schema: string, strict: boolean): string {
  return `{"format":{"type":"json_schema","name":"answer","strict":${strict},"schema":${schema}}}`;
}
