import { Copy } from "../parts/copy.tsx";
import { Secret } from "../parts/secret.tsx";

/** Shows a new secret, which is not available later, and a command that uses it. */
export function NewSecret({ secret, mayGenerate }: { secret: string; mayGenerate: boolean }) {
  const body = `-H "Content-Type: application/json" -d '{"prompt": "What is 6 * 7?"}'`;
  const line = mayGenerate
    ? `curl ${location.origin}/v1/generate -H "X-API-Key: ${secret}" ${body}`
    : `curl ${location.origin}/v1/quotas -H "X-API-Key: ${secret}"`;
  return (
    <>
      <Secret secret={secret}>
        The service stores only its hash and cannot show it again. Keep it on a server; never put it into a browser or
        an app.
      </Secret>
      <p>Try it:</p>
      <pre class="wrap">{line}</pre>
      <Copy text={line} label="Copy the command" />
    </>
  );
}
