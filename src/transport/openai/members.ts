import { type MemberRules, refuse, unless } from "../call/members.ts";

/** What becomes of the parameters of Chat Completions that are no fields of `CreateChatCompletionRequest`. */
export const CHAT_MEMBERS: MemberRules = {
  refused: new Map<string, (value: unknown) => string | undefined>([
    ["logprobs", refuse()],
    ["top_logprobs", (value) => (value === 0 ? undefined : "is not supported. Leave it out.")],
    ["logit_bias", refuse()],
    ["audio", refuse("Answers are text. Leave it out.")],
    ["modalities", (value) => (JSON.stringify(value) === '["text"]' ? undefined : 'must be ["text"]. Leave it out.')],
    ["functions", refuse("Send tools.")],
    ["function_call", refuse("Send tool_choice.")],
    ["messages[].function_call", refuse("Send tool_calls.")],
    ["messages[].audio", refuse()],
    // Of the Responses API: the answer would have another form or length, or know less.
    ["input", refuse("It belongs to the Responses API. Send messages.")],
    ["instructions", refuse("It belongs to the Responses API. Send a message of the role system.")],
    ["max_output_tokens", refuse("It belongs to the Responses API. Send max_completion_tokens.")],
    ["text", refuse("It belongs to the Responses API. Send response_format and verbosity.")],
    ["previous_response_id", refuse("The service stores no answers. Send the whole conversation as messages.")],
    ["conversation", refuse("The service stores no answers. Send the whole conversation as messages.")],
    ["messages[].content[].file.file_id", refuse("The service stores no files. Send file_data.")],
  ]),
  idle: new Map([
    ["seed", unless()],
    ["service_tier", unless("auto", "default")],
    ["store", unless()],
    ["prediction", unless()],
    ["prompt_cache_retention", unless()],
    ["stream_options.include_obfuscation", unless()],
    ["messages[].name", unless()],
    ["messages[].refusal", unless()],
    ["messages[].annotations", unless()],
  ]),
};
