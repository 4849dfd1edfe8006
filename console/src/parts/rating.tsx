import { ThumbsDown, ThumbsUp } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { GenerationService } from "../../../gen/chorus/v1/generation_pb.js";
import { describe } from "../failure.ts";
import { generation } from "../rpc.ts";
import { can } from "../session/session.ts";
import { Icon } from "./icon.tsx";
import { toast } from "./toasts.tsx";

const CHOICES = [
  [true, "Good answer", ThumbsUp],
  [false, "Bad answer", ThumbsDown],
] as const;

interface Props {
  /** Identifier of the generation. */
  id: string;
  /** Score of the recorded outcome, 0 to 1; undefined without one. */
  score?: number | undefined;
  /** What the score was read from. When it is read again, its score counts, also after one that was given here. */
  readFrom?: object;
}

/** Two buttons that record whether an answer was good. The last one counts. Nothing for a role that may not. */
export function Rating({ id, score: recorded, readFrom }: Props) {
  const [own, setOwn] = useState<number>();
  useEffect(() => setOwn(undefined), [readFrom]);
  const [busy, setBusy] = useState(false);
  const score = own ?? recorded;
  if (!can(GenerationService.method.recordOutcome)) return null;
  const record = async (correct: boolean) => {
    setBusy(true);
    try {
      setOwn((await generation.recordOutcome({ id, correct })).score);
    } catch (error) {
      toast(`Not recorded. ${describe(error).text}`, "bad");
    }
    setBusy(false);
  };
  return (
    <span class="rating">
      {CHOICES.map(([correct, label, icon]) => (
        <button
          key={label}
          type="button"
          class="quiet round"
          aria-label={label}
          title={label}
          aria-pressed={score === Number(correct)}
          aria-disabled={busy}
          onClick={() => !busy && record(correct)}
        >
          <Icon of={icon} />
        </button>
      ))}
      {score !== undefined && score > 0 && score < 1 && <span class="soft small">{score}</span>}
    </span>
  );
}
