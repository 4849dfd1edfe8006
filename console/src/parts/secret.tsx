import type { ComponentChildren } from "preact";
import { Copy } from "./copy.tsx";
import { Note } from "./note.tsx";

/** Shows a secret that is not available later. The children say where to keep it. */
export function Secret({ secret, children }: { secret: string; children: ComponentChildren }) {
  return (
    <>
      <Note tone="warn">
        <p>
          <strong>Store it now.</strong> {children}
        </p>
      </Note>
      <pre class="secret" data-secret>
        {secret}
      </pre>
      <Copy text={secret} label="Copy the secret" />
    </>
  );
}
