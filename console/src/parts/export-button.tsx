import { Download, X } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Progress } from "../all-pages.ts";
import { describe } from "../failure.ts";
import { count } from "../format.ts";
import { Icon } from "./icon.tsx";

interface Props {
  label: string;
  /** Creates and saves the file. @returns a sentence about the result */
  run: (progress: Progress, signal: AbortSignal) => Promise<string>;
}

/** A button that exports many pages to a file. It shows the progress and can be stopped. */
export function ExportButton({ label, run }: Props) {
  const [message, setMessage] = useState("");
  const running = useRef<AbortController | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  useEffect(() => () => running.current?.abort(), []);

  const start = async () => {
    const leaving = new AbortController();
    running.current = leaving;
    setBusy(true);
    setMessage("");
    try {
      setMessage(await run((rows) => setMessage(`${count(rows)} rows…`), leaving.signal));
    } catch (error) {
      const { title, text } = describe(error);
      setMessage(leaving.signal.aborted ? "Stopped; nothing was saved." : `${title}. ${text}`);
    }
    setBusy(false);
  };
  return (
    <span class="export">
      <button type="button" onClick={() => (busy ? running.current?.abort() : start())}>
        <Icon of={busy ? X : Download} />
        {busy ? "Stop" : label}
      </button>
      <span role="status" class="soft small">
        {message}
      </span>
    </span>
  );
}
