import { useState } from "preact/hooks";
import { ActivityService, RunTextState } from "../../../gen/chorus/admin/v1/activity_pb.js";
import {
  Role,
  RoleSchema,
  type RunText,
  type RunTextDraft,
  type RunTextMessage,
} from "../../../gen/chorus/v1/generation_pb.js";
import { wordOf } from "../../../src/contract/json-names.ts";
import { directionOf } from "../direction.ts";
import { count, timeText, words } from "../format.ts";
import { Card } from "../parts/card.tsx";
import { Copy } from "../parts/copy.tsx";
import { FailureNote } from "../parts/failure-note.tsx";
import { useAction } from "../parts/use-action.ts";
import type { Step } from "../playground/steps.ts";
import { activity } from "../rpc.ts";
import { can } from "../session/session.ts";
import { DeleteText } from "./delete-text.tsx";

interface Props {
  /** Identifier of the generation. */
  id: string;
  state: RunTextState;
  steps: readonly Step[];
  /** Operators cannot read texts. */
  isOperator: boolean;
}

/** Why there is no text to show. */
const WHY_NOT: Partial<Record<RunTextState, string>> = {
  [RunTextState.OFF]: "The workspace keeps no text of requests. An owner can change that on the page Activity.",
  [RunTextState.FORBIDDEN]: "No text of this request is kept, because its key forbids it.",
  [RunTextState.ABSENT]:
    "No text of this request is kept: it came before texts were kept, was deleted or is too old, or the workspace " +
    "had too much text on that day.",
};

/** The prompt, drafts and answer, where they are kept. They are read on demand, because each read is recorded. */
export function RunTextCard({ id, state, steps, isOperator }: Props) {
  const [text, setText] = useState<RunText>();
  const [isDeleted, setDeleted] = useState(false);
  const { busy, error, run } = useAction();
  const whyNot = whyNoText(isDeleted ? RunTextState.ABSENT : state, isOperator);
  if (whyNot) {
    return (
      <Card title="What was said">
        <p class="help">{whyNot}</p>
      </Card>
    );
  }
  const show = async () => setText(await activity.getRunText({ id }));
  const actions = can(ActivityService.method.deleteRunText) && <DeleteText id={id} deleted={() => setDeleted(true)} />;
  return (
    <Card title="What was said" actions={actions}>
      {text ? (
        <Said text={text} steps={steps} />
      ) : (
        <>
          <p class="help">Prompt, drafts and answer are kept. The audit log records that you read them.</p>
          {error !== undefined && <FailureNote error={error} />}
          <div class="buttons start">
            <button type="button" disabled={busy} onClick={() => run(show)}>
              {busy ? "Loading…" : "Show the text"}
            </button>
          </div>
        </>
      )}
    </Card>
  );
}

/** Why a page has no text to show; empty if it has. */
export function whyNoText(state: RunTextState, isOperator = false): string {
  const reason = WHY_NOT[state];
  if (reason) return reason;
  if (isOperator) return "The text of this request is kept for its workspace. Operators cannot read it.";
  if (can(ActivityService.method.getRunText)) return "";
  return "The text of this request is kept. To read it needs the role owner or developer.";
}

function Said({ text: { messages, files, drafts, answer, calls, isCut, keptUntil }, steps }: SaidProps) {
  return (
    <div class="said">
      <h3>Prompt</h3>
      {messages.map((message, at) => (
        <Part key={at} title={titleOf(message)} text={message.text} />
      ))}
      {files.map(({ name, mediaType, size }, at) => (
        <p key={at} class="small">
          File {name || "without a name"} <span class="soft">{`${mediaType}, ${count(size)} bytes, not kept`}</span>
        </p>
      ))}
      {drafts.length > 0 && (
        <>
          <h3>Drafts</h3>
          <DraftCards drafts={drafts} steps={steps} />
        </>
      )}
      <h3>Answer</h3>
      {answer !== "" && <Part title="assistant" text={answer} copy />}
      {calls.map((call, at) => (
        <Part key={at} title={titleOf(call)} text={call.text} />
      ))}
      {answer === "" && calls.length === 0 && <p class="help">There was none.</p>}
      <p class="help">
        {isCut && "There was more text. Only a part of it is kept. "}Kept until {timeText(keptUntil)} UTC.
      </p>
    </div>
  );
}

interface SaidProps {
  text: RunText;
  steps: readonly Step[];
}

/** Drafts side by side. */
export function DraftCards({ drafts, steps }: { drafts: readonly RunTextDraft[]; steps: readonly Step[] }) {
  return (
    <div class="cards">
      {drafts.map(({ step, text }) => (
        <Part key={step} title={draftTitle(step, steps)} text={text} />
      ))}
    </div>
  );
}

function Part({ title, text, copy = false }: { title: string; text: string; copy?: boolean }) {
  return (
    <figure>
      <figcaption>
        {title} {copy && <Copy bare text={text} label="Copy the answer" />}
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: without it the keyboard could not scroll the text */}
      <pre class="wrap" dir={directionOf(text)} tabIndex={0}>
        {text}
      </pre>
    </figure>
  );
}

function titleOf({ role, tool }: RunTextMessage): string {
  if (tool === "") return wordOf(RoleSchema, role);
  return role === Role.TOOL ? `result of ${tool}` : `call of ${tool}`;
}

/** The drafts have their places in the plan above. */
function draftTitle(step: number, steps: readonly Step[]): string {
  const found = steps.find(({ key }) => key === `${step}`);
  return found ? `${words(found.role)}, step ${step}` : `step ${step}`;
}
