import { MESSAGES, TOOL } from "./python-anthropic.ts";
import { CHAT, RESPONSES } from "./python-openai.ts";
import { USER } from "./python-schemas.ts";

/**
 * Requests as Python's clients send them: members, their order and their values are those that the clients write.
 * They stand in place of the clients, which are not on npm.
 */
export interface PythonRequest {
  readonly client: string;
  readonly path: "chat/completions" | "responses" | "messages" | "messages/count_tokens";
  /** What the answer must be; the model is scripted so that it says it. */
  readonly wants: "text" | "call" | "object" | "count";
  readonly body: object;
  /** Codes of the notices that the answer has beside `unknown_model`. */
  readonly notices?: readonly string[];
}

const at = (path: PythonRequest["path"]) => (request: Omit<PythonRequest, "path">) => ({ ...request, path });

export const PYTHON_REQUESTS: readonly PythonRequest[] = [
  ...CHAT.map(at("chat/completions")),
  ...RESPONSES.map(at("responses")),
  ...MESSAGES.map(at("messages")),
  {
    client: "anthropic, count_tokens",
    path: "messages/count_tokens",
    wants: "count",
    body: { messages: [USER], model: "claude-sonnet-4-5", tools: [TOOL] },
  },
];
