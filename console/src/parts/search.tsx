import { useEffect, useState } from "preact/hooks";
import { narrow } from "../route.ts";

interface Props {
  /** The text in the address. */
  value: string;
  /** Name of the query parameter that keeps the text. */
  name?: string;
  label?: string;
  placeholder: string;
  maxLength?: number;
}

/** Searches after a pause in typing: the text goes into the address. */
export function Search({ value, name = "search", label = "Find", placeholder, maxLength = 200 }: Props) {
  const [text, setText] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => {
      if (text.trim() !== value) narrow({ [name]: text.trim() || undefined });
    }, 250);
    return () => clearTimeout(timer);
  }, [text, value]);
  return (
    <input
      type="search"
      aria-label={label}
      placeholder={placeholder}
      maxLength={maxLength}
      value={text}
      onInput={(event) => setText(event.currentTarget.value)}
    />
  );
}
