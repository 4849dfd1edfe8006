import { TextCache } from "../contract/text-cache.ts";
import type { CallOptions } from "./options.ts";
import type { ModelEntry } from "./port/entry.ts";
import type { ModelCall, Prompt, Reasoning, Tools } from "./port/model.ts";
import { type Forms, SCHEMA_FORMS, type WireCall, type WireFormat } from "./wire/wire.ts";

/** Tokens for thinking, added to the ceiling of the call. */
const ROOM: Readonly<Record<Reasoning, number>> = { none: 0, low: 4_096, medium: 12_288, high: 24_576 };

/** Whether a completion may have calls of tools. */
export function takesCalls({ tools }: ModelCall): boolean {
  return tools !== undefined && tools.choice !== "none";
}

/** Converts a call for the wire format. */
export function wireCall(
  call: ModelCall,
  entry: ModelEntry,
  format: WireFormat,
  { forms, maxTokens, thinks }: CallOptions,
): WireCall {
  const schema = call.format?.type === "schema" ? call.format.schema : undefined;
  const isStrict = schema !== undefined && forms.format === 0 && format.takesStrictly(schema);
  const isRefused = call.tools !== undefined && forms.toolFormat > 0;
  const { otherSchemas } = format;
  // Beside the caller's tools, a schema cannot be one.
  const isTaken = !isRefused && (isStrict || otherSchemas === "mode" || (otherSchemas === "tool" && !call.tools));
  const isSent = schema !== undefined && isTaken && forms.format < SCHEMA_FORMS;
  const { temperature, reasoning } = sampling(call, format, forms);
  const asksToThink = format.needsRoomWhenAsked && forms.reasoning < format.forms.reasoning;
  const asked = ROOM[reasoning ?? "none"];
  // A model that thinks without being asked, or in spite of `none`, needs room as well.
  const least = thinks ? ROOM[reasoning === undefined ? "medium" : "low"] : 0;
  const needsRoom = (thinks || asksToThink) && !format.cannotThink?.(call.prompt, forms);
  const room = needsRoom ? asked || least : 0;
  const ceiling = call.maxTokens === undefined ? undefined : call.maxTokens + room;
  const own = Number.isFinite(maxTokens) ? maxTokens : format.defaultMaxTokens;
  const prompt = withDemands(call, { schema: isSent ? undefined : schema, isForced: forms.toolChoice === 0 });
  return {
    model: entry.model,
    prompt: forms.system === 0 ? prompt : withoutSystem(prompt),
    maxTokens: ceiling === undefined ? own : Math.min(ceiling, maxTokens),
    temperature,
    stops: call.stops ?? [],
    format: isSent
      ? { type: "schema", schema, strict: isStrict }
      : isRefused
        ? undefined
        : call.format && { type: "json" },
    tools: call.tools && wireTools(call.tools, format, forms),
    reasoning,
    streamed: call.streamed,
    cacheKey: call.cacheKey,
  };
}

/** Length of the schemas of tools up to which they are checked for a strict mode, which holds the event loop. */
const MAX_STRICT = 65_536;

function wireTools({ list, ...rest }: Tools, format: WireFormat, forms: Forms): WireCall["tools"] {
  const isTried = forms.strictTools < format.forms.strictTools;
  let length = 0;
  const strictly = (schema: string) => {
    length += schema.length;
    return isTried && length <= MAX_STRICT && isStrict(schema, format);
  };
  return { ...rest, list: list.map((tool) => ({ ...tool, strict: strictly(tool.parameters) })) };
}

/** By format, whether its strict mode takes the schema of a tool. Kept, because each step sends the tools again. */
const kept = new WeakMap<WireFormat, TextCache<boolean>>();

function isStrict(schema: string, format: WireFormat): boolean {
  const known = kept.get(format) ?? new TextCache<boolean>({ entries: 512, length: 1_048_576 });
  kept.set(format, known);
  return known.get(schema, (text) => format.takesStrictly(text));
}

/** Temperature and reasoning of a call, where the vendor may take only one of the two. */
function sampling(
  { temperature, defaultTemperature, reasoning, tools }: ModelCall,
  { temperatureOrReasoning, forms: { reasoning: lastForm } }: WireFormat,
  forms: Forms,
): Pick<WireCall, "temperature" | "reasoning"> {
  const isOff = reasoning !== undefined && tools !== undefined && forms.toolReasoning > 0;
  if (!temperatureOrReasoning)
    return { temperature: temperature ?? defaultTemperature, reasoning: isOff ? "none" : reasoning };
  const thinks = reasoning !== undefined && reasoning !== "none" && forms.reasoning < lastForm;
  const sent = temperature ?? (thinks ? undefined : defaultTemperature);
  return { temperature: sent, reasoning: sent !== undefined && forms.temperature === 0 ? undefined : reasoning };
}

/** The prompt with the instructions at the beginning of its first message, which is the user's. */
function withoutSystem(prompt: Prompt): Prompt {
  const { system, messages } = prompt;
  const [first, ...others] = messages;
  if (system === "" || !first) return prompt;
  const text = first.text === "" ? system : `${system}\n\n${first.text}`;
  return { system: "", messages: [{ ...first, text }, ...others] };
}

/** The prompt with what the vendor does not enforce: a schema, or the call of a tool. */
function withDemands(
  { prompt, tools }: ModelCall,
  { schema, isForced }: { schema: string | undefined; isForced: boolean },
): Prompt {
  const demands: string[] = [];
  if (schema !== undefined)
    demands.push(
      `Answer with one JSON object that is valid against this JSON Schema, and with nothing else:\n${schema}`,
    );
  if (!isForced && tools?.choice === "required") demands.push("Call a tool.");
  if (!isForced && typeof tools?.choice === "object") demands.push(`Call the tool ${tools.choice.name}.`);
  if (demands.length === 0) return prompt;
  const { system, messages } = prompt;
  return { system: [...(system === "" ? [] : [system]), ...demands].join("\n\n"), messages };
}
