import { operatorTokenFile } from "./discovery.ts";

export interface Greeting {
  restUrl: string;
  rpcUrl: string;
  dataDir: string;
  /** Secrets that were created at this start and are shown only now. */
  secrets: { apiKey?: string; operatorToken?: string };
  /** Whether only the offline models are available. */
  offline: boolean;
}

/** Text that the service prints on standard output when it is ready: addresses, new secrets, a command to try. */
export function greeting({ restUrl, rpcUrl, dataDir, secrets, offline }: Greeting): string {
  const lines = ["Chorus is ready.", "", `  REST and SSE            ${restUrl}`, `  Connect, gRPC, gRPC-Web ${rpcUrl}`];
  if (offline) {
    lines.push(
      "",
      "  No vendor is configured, so the built-in offline models answer. They only extract and calculate.",
      "  To use real models, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or write a catalogue file.",
    );
  }
  if (secrets.apiKey) lines.push("", `  API key                 ${secrets.apiKey}   (shown only once)`);
  if (secrets.operatorToken) {
    const file = operatorTokenFile(dataDir);
    lines.push(`  Operator token          ${secrets.operatorToken}   (shown only once; kept in ${file})`);
  }
  const headers = `-H "X-API-Key: ${secrets.apiKey ?? "$CHORUS_API_KEY"}" -H "Content-Type: application/json"`;
  lines.push("", "Try it:", "", `  curl ${restUrl}/v1/generate ${headers} -d '{"prompt": "What is 17 * 23 + 4?"}'`, "");
  if (!secrets.apiKey) lines.push("  (To create a key: npm run chorus -- keys create --workspace default)", "");
  return `${lines.join("\n")}\n`;
}
