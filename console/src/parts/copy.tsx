import { useEffect, useState } from "preact/hooks";

/** A button that copies a text and confirms it for a timeText. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [message, setMessage] = useState("");
  useEffect(() => {
    if (!message) return undefined;
    const timer = setTimeout(() => setMessage(""), 2500);
    return () => clearTimeout(timer);
  }, [message]);
  const copy = () => {
    // Browsers have no clipboard on pages that were loaded without TLS from another machine.
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    written.then(
      () => setMessage("Copied"),
      () => setMessage("Select the text and copy it by hand"),
    );
  };
  return (
    <span class="copy">
      <button type="button" onClick={copy}>
        {label}
      </button>
      <span role="status">{message}</span>
    </span>
  );
}
