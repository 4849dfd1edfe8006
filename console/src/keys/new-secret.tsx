import { Copy } from "../parts/copy.tsx";

/** A new secret, the only time that it can be seen, and a line that uses it. */
export function NewSecret({ secret, mayGenerate }: { secret: string; mayGenerate: boolean }) {
  const line = mayGenerate
    ? `curl ${location.origin}/v1/generate -H "X-API-Key: ${secret}" -H "Content-Type: application/json" -d '{"prompt": "What is 6 * 7?"}'`
    : `curl ${location.origin}/v1/quotas -H "X-API-Key: ${secret}"`;
  return (
    <>
      <p class="note warn">
        <strong>Store it now.</strong> Only its hash is kept, so it can never be shown again. Keep it on a server, out
        of browsers and apps.
      </p>
      <pre class="secret" data-secret>
        {secret}
      </pre>
      <Copy text={secret} label="Copy the secret" />
      <p>Try it:</p>
      <pre class="wrap">{line}</pre>
      <Copy text={line} label="Copy the line" />
    </>
  );
}
