import { X } from "lucide";
import { directionOf } from "../direction.ts";
import { IconButton } from "../parts/icon-button.tsx";
import { Segments } from "../parts/segments.tsx";
import type { Draft, DraftMessage, RoleName } from "./draft.ts";

interface Props {
  draft: Draft;
  change: (changes: Partial<Draft>) => void;
}

const MOST_MESSAGES = 40;

const INPUTS = [
  ["prompt", "Prompt"],
  ["messages", "Messages"],
] as const;

/** Edits the prompt or the conversation. */
export function InputEditor({ draft, change }: Props) {
  const { input, prompt, messages } = draft;
  return (
    <section class="field">
      <Segments legend="Input" name="input" value={input} options={INPUTS} change={(next) => change({ input: next })} />
      {input === "prompt" ? (
        <textarea
          aria-label="Prompt"
          dir={directionOf(prompt)}
          rows={6}
          placeholder="What is 6 * 7?"
          value={prompt}
          onInput={(event) => change({ prompt: event.currentTarget.value })}
        />
      ) : (
        <Messages messages={messages} change={(next) => change({ messages: next })} />
      )}
    </section>
  );
}

function Messages({
  messages,
  change,
}: {
  messages: readonly DraftMessage[];
  change: (messages: readonly DraftMessage[]) => void;
}) {
  const edit = (id: number, changes: Partial<DraftMessage>) =>
    change(messages.map((message) => (message.id === id ? { ...message, ...changes } : message)));
  const add = () => {
    const last = messages.at(-1);
    const role: RoleName = last?.role === "user" ? "assistant" : "user";
    change([...messages, { id: (last?.id ?? 0) + 1, role, content: "" }]);
  };
  return (
    <>
      <ol class="messages">
        {messages.map(({ id, role, content }, i) => (
          <li key={id}>
            <select
              aria-label={`Role of message ${i + 1}`}
              value={role}
              onChange={(event) => edit(id, { role: event.currentTarget.value as RoleName })}
            >
              <option value="user">user</option>
              <option value="assistant">assistant</option>
              <option value="system">system</option>
            </select>
            <textarea
              aria-label={`Message ${i + 1}`}
              dir={directionOf(content)}
              rows={2}
              value={content}
              onInput={(event) => edit(id, { content: event.currentTarget.value })}
            />
            <IconButton
              icon={X}
              label={`Remove message ${i + 1}`}
              disabled={messages.length === 1}
              run={() => change(messages.filter((message) => message.id !== id))}
            />
          </li>
        ))}
      </ol>
      <button type="button" class="small add" onClick={add} disabled={messages.length >= MOST_MESSAGES}>
        Add a message
      </button>
    </>
  );
}
