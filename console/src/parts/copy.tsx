import { useEffect, useState } from "preact/hooks";

/** A button that copies a text and confirms it for a timeText. */
export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (!said) return undefined;
    const timer = setTimeout(() => setSaid(""), 2500);
    return () => clearTimeout(timer);
  }, [said]);
  const copy = () => {
    // Browsers have no clipboard on pages that were loaded without TLS from another machine.
    const written = navigator.clipboard?.writeText(text) ?? Promise.reject(new Error("no clipboard"));
    written.then(
      () => setSaid("Copied"),
      () => setSaid("Select the text and copy it by hand"),
    );
  };
  return (
    <span class="copy">
      <button type="button" onClick={copy}>
        {label}
      </button>
      <span role="status">{said}</span>
    </span>
  );
}
