import { useRef } from "preact/hooks";
import { type AlertDelivery, AlertDeliveryState } from "../../../gen/chorus/admin/v1/alerts_pb.js";
import { timeText } from "../format.ts";
import { Note } from "../parts/note.tsx";
import { adviceOf } from "./advice.ts";

/** A test that was sent from this page. */
export interface SentTest {
  /** Identifier of its delivery. */
  readonly id: string;
  readonly isMail: boolean;
}

/** The delivery of a test, as it was when it was last among those that are shown. */
export function useTested(test: SentTest | undefined, shown: readonly AlertDelivery[]): AlertDelivery | undefined {
  const last = useRef<AlertDelivery | undefined>(undefined);
  const found = shown.find(({ id }) => id === test?.id);
  if (found) last.current = found;
  return last.current?.id === test?.id ? last.current : undefined;
}

/** Whether the first attempt of a test is still under way. */
export function isUnderWay(test: SentTest | undefined, delivery: AlertDelivery | undefined): boolean {
  if (!test) return false;
  return !delivery || (delivery.state === AlertDeliveryState.WAITING && delivery.error === "");
}

/** What became of a test, and what to do. Without a test it is empty, so that screen readers hear when there is one. */
export function TestResult({ of, delivery }: { of: SentTest | undefined; delivery: AlertDelivery | undefined }) {
  return <div role="status">{of && <Advice of={of} delivery={delivery} />}</div>;
}

function Advice({ of: { isMail }, delivery }: { of: SentTest; delivery: AlertDelivery | undefined }) {
  const { tone, title, text } = adviceOf(delivery, isMail);
  return (
    <Note tone={tone}>
      <p>
        <strong>{title}.</strong> {text}
      </p>
      {delivery?.nextAttemptAt && delivery.error && (
        <p class="soft small">Next attempt {timeText(delivery.nextAttemptAt)}</p>
      )}
    </Note>
  );
}
