import { type MemberRules, refuse, unless } from "../call/members.ts";

const STATELESS = "The service stores no responses. Send the whole conversation as input.";

/** The value of `include` that asks for the probabilities of tokens, which the service does not have. */
const LOGPROBS = "message.output_text.logprobs";

/** What becomes of the parameters of the Responses API that are no fields of `CreateResponseRequest`. */
export const RESPONSE_MEMBERS: MemberRules = {
  refused: new Map<string, (value: unknown) => string | undefined>([
    ["previous_response_id", refuse(STATELESS)],
    ["conversation", refuse(STATELESS)],
    ["background", refuse("Leave it out.")],
    ["prompt", refuse("The service stores no prompts. Send instructions and input.")],
    ["top_logprobs", (value) => (value === 0 ? undefined : "is not supported. Leave it out.")],
    ["modalities", (value) => (JSON.stringify(value) === '["text"]' ? undefined : 'must be ["text"]. Leave it out.')],
    // Of Chat Completions: the answer would have another form or length, or know less.
    ["messages", refuse("It belongs to Chat Completions. Send input.")],
    ["max_tokens", refuse("It belongs to Chat Completions. Send max_output_tokens.")],
    ["max_completion_tokens", refuse("It belongs to Chat Completions. Send max_output_tokens.")],
    ["response_format", refuse("It belongs to Chat Completions. Send text.format.")],
    ["n", (value) => (value === 1 ? undefined : "is not supported. Leave it out.")],
    ["stop", refuse("The Responses API has no stop sequences. Leave it out.")],
    ["logprobs", refuse()],
    ["logit_bias", refuse()],
    ["functions", refuse("Send tools.")],
    ["function_call", refuse("Send tool_choice.")],
    ["tools[].filters", refuseFilters],
    ["input[].content[].file_id", refuse("The service stores no files. Send file_data or image_url.")],
    ["input[].content[].file_url", refuse("The service loads no files. Send file_data.")],
  ]),
  idle: new Map<string, (value: unknown) => boolean>([
    // Thoughts are never returned, so nothing of them is missing in the next request.
    ["include", (value) => !Array.isArray(value) || value.includes(LOGPROBS)],
    ["store", unless()],
    ["service_tier", unless("auto", "default")],
    ["truncation", unless("disabled")],
    ["max_tool_calls", unless()],
    ["context_management", unless()],
    ["client_metadata", () => false],
    ["prompt_cache_retention", unless()],
    ["prompt_cache_options", unless()],
    ["presence_penalty", unless(0)],
    ["frequency_penalty", unless(0)],
    // Streams have no random text beside the pieces.
    ["stream_options", (value) => Object.values(value ?? {}).some((option) => option !== false && option !== null)],
    ["reasoning.summary", unless("auto")],
    ["reasoning.generate_summary", unless("auto")],
    // What clients send back of earlier answers.
    ...["id", "status", "phase", "call_id", "execution", "role"].map((name) => own(`input[].${name}`)),
    ...["annotations", "logprobs"].map((name) => own(`input[].content[].${name}`)),
    // Models see all tools.
    ...["tools[]", "tools[].tools[]", "input[].tools[]"].map((path) => own(`${path}.defer_loading`)),
  ]),
};

/** For the domains to which a web search is restricted. */
function refuseFilters(value: unknown): string | undefined {
  const lists = Object.values(value ?? {});
  const isEmpty = lists.every((list) => list === null || (Array.isArray(list) && list.length === 0));
  return isEmpty ? undefined : "is not supported: the service searches all domains. Leave it out.";
}

/** A member of an item that the service itself has written, or that only its author needs. */
function own(name: string): [name: string, asks: () => boolean] {
  return [name, () => false];
}
