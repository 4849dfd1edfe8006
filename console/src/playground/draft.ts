import { Effort, OutputShape, Role } from "../../../gen/chorus/v1/generation_pb.js";

export type Mode = "text" | "extract" | "json_schema";
export type EffortName = "auto" | "low" | "medium" | "high";
export type RoleName = "system" | "user" | "assistant";

export interface DraftMessage {
  /** Identifies a message while it is edited. */
  readonly id: number;
  readonly role: RoleName;
  readonly content: string;
}

export interface DraftFile {
  readonly name: string;
  readonly mediaType: string;
  readonly data: Uint8Array;
}

/** A request that is being edited. Numbers are kept as typed. */
export interface Draft {
  readonly mode: Mode;
  readonly input: "prompt" | "messages";
  readonly prompt: string;
  readonly messages: readonly DraftMessage[];
  readonly system: string;
  readonly effort: EffortName;
  readonly temperature: string;
  readonly maxTokens: string;
  readonly stops: readonly string[];
  readonly files: readonly DraftFile[];
  readonly schema: string;
  readonly webSearch: boolean;
  /** Continues the last message, which must be of the assistant. */
  readonly continues: boolean;
}

const SCHEMA_EXAMPLE = `{
  "type": "object",
  "properties": {
    "number": {"type": "string"},
    "total": {"type": "number", "minimum": 0},
    "email": {"type": ["string", "null"]}
  },
  "required": ["number", "total", "email"],
  "additionalProperties": false
}`;

export const EMPTY: Draft = {
  mode: "text",
  input: "prompt",
  prompt: "",
  messages: [{ id: 1, role: "user", content: "" }],
  system: "",
  effort: "auto",
  temperature: "",
  maxTokens: "",
  stops: [],
  files: [],
  schema: SCHEMA_EXAMPLE,
  webSearch: false,
  continues: false,
};

const EFFORTS = { auto: Effort.AUTO, low: Effort.LOW, medium: Effort.MEDIUM, high: Effort.HIGH };
const ROLES = { system: Role.SYSTEM, user: Role.USER, assistant: Role.ASSISTANT };

/** Why a draft cannot be sent yet, in a sentence; empty if it can. The service validates everything else. */
export function missing({ input, prompt, messages }: Draft): string {
  if (input === "prompt") return prompt === "" ? "Write a prompt first." : "";
  return messages.every(({ content }) => content === "") ? "Write a message first." : "";
}

/** What a draft asks: its prompt, or its last message with a text. */
export function textOf({ input, prompt, messages }: Draft): string {
  return input === "prompt" ? prompt : (messages.findLast(({ content }) => content !== "")?.content ?? "");
}

/** Whether the answer is streamed: a JSON Schema needs a complete one. */
export function isStreamed({ mode }: Draft): boolean {
  return mode !== "json_schema";
}

/** Whether the draft can continue its last message. */
export function canContinue({ mode, input, messages }: Draft): boolean {
  return mode !== "json_schema" && input === "messages" && messages.at(-1)?.role === "assistant";
}

/** Changes a draft, and clears what the service would then refuse: stop sequences with a schema, for example. */
export function changed(draft: Draft, changes: Partial<Draft>): Draft {
  const next = { ...draft, ...changes };
  return {
    ...next,
    stops: next.mode === "json_schema" ? [] : next.stops,
    continues: next.continues && canContinue(next),
  };
}

/** The draft as the RPC request. */
export function requestOf(draft: Draft) {
  const { mode, input, prompt, messages, system, effort, temperature, maxTokens, stops, files, schema } = draft;
  const stopSequences = stopsOf(stops);
  return {
    ...(input === "prompt"
      ? { prompt }
      : { messages: messages.map(({ role, content }) => ({ role: ROLES[role], content })) }),
    system,
    effort: EFFORTS[effort],
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    ...(maxTokens === "" ? {} : { maxTokens: Number(maxTokens) }),
    stopSequences,
    ...(mode === "extract" ? { outputShape: OutputShape.EXTRACT } : {}),
    ...(mode === "json_schema"
      ? { responseFormat: { format: { case: "jsonSchema" as const, value: { schema } } } }
      : {}),
    ...(draft.webSearch ? { webSearch: true } : {}),
    ...(draft.continues ? { continueLastMessage: true } : {}),
    attachments: files.map(({ name, mediaType, data }) => ({ name, mediaType, data })),
  };
}

/** The draft as the JSON body of the REST API, without files and schema. */
export function bodyOf(draft: Draft): Record<string, unknown> {
  const { mode, input, prompt, messages, system, effort, temperature, maxTokens, stops } = draft;
  const stopSequences = stopsOf(stops);
  return {
    ...(input === "prompt" ? { prompt } : { messages: messages.map(({ role, content }) => ({ role, content })) }),
    ...(system === "" ? {} : { system }),
    ...(effort === "auto" ? {} : { effort }),
    ...(temperature === "" ? {} : { temperature: Number(temperature) }),
    ...(maxTokens === "" ? {} : { max_tokens: Number(maxTokens) }),
    ...(stopSequences.length === 0 ? {} : { stop_sequences: stopSequences }),
    ...(mode === "extract" ? { output_shape: "extract" } : {}),
    ...(draft.webSearch ? { web_search: true } : {}),
    ...(draft.continues ? { continue: true } : {}),
  };
}

function stopsOf(stops: readonly string[]): string[] {
  return stops.filter((stop) => stop !== "");
}
