import { useMemo } from "preact/hooks";
import { highlight } from "./highlight.ts";

/** A program with coloured words, which wraps. */
export function Code({ text }: { text: string }) {
  const html = useMemo(() => highlight(text), [text]);
  return <pre class="code" dangerouslySetInnerHTML={{ __html: html }} />;
}
