import { Check, Copy as CopyIcon } from "lucide";
import { useEffect, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

interface Props {
  text: string;
  /** Name of the button. */
  label?: string;
  /** True shows an icon only. */
  bare?: boolean;
}

/** A button that copies a text and confirms it for a moment. */
export function Copy({ text, label = "Copy", bare = false }: Props) {
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
  const icon = <Icon of={message === "Copied" ? Check : CopyIcon} />;
  return (
    <span class="copy">
      {bare ? (
        <button type="button" class="quiet round" aria-label={label} title={label} onClick={copy}>
          {icon}
        </button>
      ) : (
        <button type="button" class="small" onClick={copy}>
          {icon}
          {label}
        </button>
      )}
      <span role="status" class={bare ? "hidden" : "soft small"}>
        {message}
      </span>
    </span>
  );
}
