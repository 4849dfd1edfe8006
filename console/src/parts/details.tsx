import type { ComponentChildren } from "preact";
import { Copy } from "./copy.tsx";

/** Names and values. Belongs into a `dl` with the class `details`. @param copy the text of a button that copies it */
export function Detail({ name, copy, children }: { name: string; copy?: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <span>{children}</span>
        {copy && <Copy bare text={copy} label={`Copy: ${name}`} />}
      </dd>
    </div>
  );
}
