import { Copy } from "../parts/copy.tsx";
import { Note } from "../parts/note.tsx";

/** Shows a new secret, which is not available later, and a command that uses it. */
export function NewSecret({ secret, mayGenerate }: { secret: string; mayGenerate: boolean }) {
  const body = `-H "Content-Type: application/json" -d '{"prompt": "What is 6 * 7?"}'`;
  const line = mayGenerate
    ? `curl ${location.origin}/v1/generate -H "X-API-Key: ${secret}" ${body}`
    : `curl ${location.origin}/v1/quotas -H "X-API-Key: ${secret}"`;
  return (
    <>
      <Note tone="warn">
        <p>
          <strong>Store it now.</strong> The service stores only its hash and cannot show it again. Keep it on a server;
          never put it into a browser or an app.
        </p>
      </Note>
      <pre class="secret" data-secret>
        {secret}
      </pre>
      <Copy text={secret} label="Copy the secret" />
      <p>Try it:</p>
      <pre class="wrap">{line}</pre>
      <Copy text={line} label="Copy the command" />
    </>
  );
}
