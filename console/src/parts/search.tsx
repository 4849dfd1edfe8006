import { useEffect, useRef, useState } from "preact/hooks";
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

/** Searches after a pause in typing: the text goes into the address. A link to another text replaces it. */
export function Search({ value, name = "search", label = "Find", placeholder, maxLength = 200 }: Props) {
  const [text, setText] = useState(value);
  // What was typed last, as the address then has it.
  const typed = useRef(value);
  useEffect(() => {
    if (value !== typed.current) setText(value);
    typed.current = value;
  }, [value]);
  useEffect(() => {
    const timer = setTimeout(() => {
      typed.current = text.trim();
      if (typed.current !== value) narrow({ [name]: typed.current || undefined });
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
