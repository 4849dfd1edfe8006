import { CircleAlert, CircleCheck } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly tone: "good" | "bad";
}

/** How long a toast stays, in milliseconds, and how many stay at once. */
const STAY_MS = 6000;
const MOST = 3;

const toasts = new EventTarget();
let last = 0;

/** Shows a sentence for some seconds. Not for errors that need an action: those stay on the page. */
export function toast(text: string, tone: Toast["tone"] = "good"): void {
  toasts.dispatchEvent(new CustomEvent<Toast>("toast", { detail: { id: ++last, text, tone } }));
}

/** Where toasts appear; once on the page. */
export function Toasts() {
  const [shown, setShown] = useState<readonly Toast[]>([]);
  useEffect(() => {
    const add = (event: Event) => {
      const { detail } = event as CustomEvent<Toast>;
      setShown((before) => [...before.slice(1 - MOST), detail]);
      setTimeout(() => setShown((before) => before.filter(({ id }) => id !== detail.id)), STAY_MS);
    };
    toasts.addEventListener("toast", add);
    return () => toasts.removeEventListener("toast", add);
  }, []);
  return (
    <div class="toasts" role="status">
      {shown.map(({ id, text, tone }) => (
        <p key={id} class={`toast ${tone}`}>
          <Icon of={tone === "good" ? CircleCheck : CircleAlert} />
          {text}
        </p>
      ))}
    </div>
  );
}
