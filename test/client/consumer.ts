// package.test.ts compiles this file as part of a consumer's project and does not run it.
import {
  type ChorusError,
  createChorus,
  type FromSchema,
  type GenerateRequest,
  type Generation,
  type Message,
  type OutputShape,
  type ResponseSchema,
  type Structured,
  type Tool,
  type ToolCall,
  type ToolChoice,
  type Tools,
} from "chorus-client";

const chorus = createChorus({ baseUrl: "https://chorus.example.com", apiKey: "secret" });

/** Compiles only if both types are identical. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(_: Same<A, B>): void {}

const INVOICE = {
  type: "object",
  properties: {
    number: { type: "string", minLength: 1 },
    total: { type: ["number", "null"] },
    paid: { type: "boolean" },
    currency: { type: "string", enum: ["EUR", "NOK"] },
    version: { type: "integer", const: 2 },
    lines: {
      type: "array",
      items: {
        type: "object",
        properties: { text: { type: "string" } },
        required: ["text"],
        additionalProperties: false,
      },
    },
    more: { type: "object" },
  },
  required: ["number", "total", "currency", "version", "lines"],
  additionalProperties: false,
} as const satisfies ResponseSchema;

interface Invoice {
  number: string;
  total: number | null;
  currency: "EUR" | "NOK";
  version: 2;
  lines: { text: string }[];
  paid?: boolean;
  more?: Record<string, unknown>;
}

export async function infers(): Promise<void> {
  const { structured, answer } = await chorus.generate({
    prompt: "a",
    response_format: { type: "json_schema", schema: INVOICE },
  });
  same<typeof structured, Invoice>(true);
  same<typeof answer, string>(true);
  // @ts-expect-error a member that the schema does not have
  structured.date;

  const inPlace = await chorus.generate({
    messages: [{ role: "user", content: "a" }],
    response_format: {
      type: "json_schema",
      schema: { type: "object", properties: { a: { type: "null" } }, required: ["a"] },
    },
  });
  same<typeof inPlace.structured.a, null>(true);
  // Without additionalProperties: false the object may have more members.
  same<typeof inPlace.structured.b, unknown>(true);

  const request = { prompt: "a", response_format: { type: "json_schema", schema: INVOICE } } as const;
  const asked = await chorus.generate({ ...request, tools: [{ name: "weather" }] });
  same<typeof asked.structured, Invoice | null>(true);
  // @ts-expect-error an answer that asks for a tool has no object
  asked.structured.number;
  const tools: Tool[] = [];
  const maybeAsked = await chorus.generate({ ...request, tools });
  same<typeof maybeAsked.structured, Invoice | null>(true);
  const unasked = await chorus.generate({ ...request, tools: [] });
  same<typeof unasked.structured, Invoice>(true);

  const loose: ResponseSchema = INVOICE;
  const any = await chorus.generate({ prompt: "a", response_format: { type: "json_schema", schema: loose } });
  same<FromSchema<{ type: "array"; items: { type: "integer" } }>, number[]>(true);
  any.structured satisfies object;

  const text = await chorus.generate({ prompt: "a", output_shape: "text", response_format: { type: "text" } });
  same<typeof text.structured, undefined>(true);
  const extracted = await chorus.generate({ prompt: "a", output_shape: "decision" });
  same<typeof extracted.structured, Record<string, unknown> | null>(true);
}

export async function streams(): Promise<string> {
  const stream = chorus.stream({ prompt: "a", output_shape: "extract" });
  for await (const event of stream) {
    if (event.type === "delta") event.text.length;
    else if (event.type === "trace") event.step.kind.length;
    else if (event.type === "tool_call") same<typeof event.arguments, Readonly<Record<string, unknown>>>(true);
    else event.usage.credits.toFixed();
    // @ts-expect-error only a delta has text
    event.text;
  }
  const { structured } = await stream.done();
  same<typeof structured, Record<string, unknown> | null>(true);
  return stream.text();
}

/** An agent whose parts are functions of their own. */
export async function asksForTools(tools: readonly Tool[], run: (call: ToolCall) => string): Promise<string> {
  const messages: Message[] = [{ role: "user", content: "a" }];
  const choose = (): ToolChoice => (messages.length > 1 ? "auto" : { name: "weather" });
  for (;;) {
    const { answer, tool_calls } = await chorus.generate({ messages, tools, tool_choice: choose() });
    if (!tool_calls) return answer;
    messages.push({ role: "assistant", content: answer, tool_calls });
    for (const call of tool_calls) messages.push({ role: "tool", tool_call_id: call.id, content: run(call) });
  }
}

/** A function around the client, with a name for each of its types, as a library that exports it needs. */
export function asksLow<const S extends ResponseSchema | undefined, const O extends OutputShape, const T extends Tools>(
  request: GenerateRequest<S, O, T>,
): Promise<Generation<Structured<S, O, T>>> {
  return chorus.generate({ ...request, effort: "low" });
}

export function mistakes(): void {
  // @ts-expect-error neither prompt nor messages
  chorus.generate({});
  // @ts-expect-error both
  chorus.generate({ prompt: "a", messages: [{ role: "user", content: "a" }] });
  // @ts-expect-error there is no model to choose
  chorus.generate({ prompt: "a", model: "best" });
  // @ts-expect-error no such effort
  chorus.generate({ prompt: "a", effort: "extreme" });
  // @ts-expect-error names are those of the wire
  chorus.generate({ prompt: "a", maxTokens: 10 });
  // @ts-expect-error no such role
  chorus.generate({ messages: [{ role: "function", content: "a" }] });
  // @ts-expect-error a schema cannot be streamed
  chorus.stream({ prompt: "a", response_format: { type: "json_schema", schema: INVOICE } });
  // @ts-expect-error the root is an object
  chorus.generate({ prompt: "a", response_format: { type: "json_schema", schema: { type: "string" } } });
  const untyped = { type: "object", properties: { a: {} } } as const;
  // @ts-expect-error every node has a type
  chorus.generate({ prompt: "a", response_format: { type: "json_schema", schema: untyped } });
  // @ts-expect-error a keyword that the service refuses
  ({ type: "object", properties: { a: { type: "string", pattern: "a" } } }) as const satisfies ResponseSchema;
  // @ts-expect-error no such interval
  chorus.metrics({ interval: "week" });
}

export function explains(error: ChorusError): string {
  switch (error.code) {
    case "rate_limited":
      return `${error.limit} ${error.retryAfterMs}`;
    case "invalid_request":
      return error.field ?? error.message;
    // @ts-expect-error no such code
    case "too_lazy":
      return "";
    default:
      return error.message;
  }
}
