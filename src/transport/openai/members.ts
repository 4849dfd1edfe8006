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
