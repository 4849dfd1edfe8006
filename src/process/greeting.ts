import { COMMANDS } from "../discovery/commands.ts";
import { operatorTokenFile } from "../discovery/data-folder.ts";
import type { WorkerReady } from "./workers/messages.ts";

export interface Greeting extends WorkerReady {
  dataDir: string;
  /** Path of the catalogue file; undefined for the built-in catalogue. */
  catalogue: string | undefined;
  /** Names of the models in the catalogue. */
  models: readonly string[];
  /** File that the created secrets were written to, in place of the output. */
  secretsFile?: string | undefined;
}

const NO_ANSWERS = "Chorus has started, but no model can answer yet. Why, and what to do, is below the addresses.";

/** Most names of models in one line. */
const MAX_MODELS = 6;

/** Text that the service prints on standard output when it is ready: addresses, new secrets, a command to try. */
export function greeting(facts: Greeting): string {
  const { restUrl, rpcUrl, signInPath, offline, canAnswer, problems } = facts;
  const lines = [canAnswer ? "Chorus is ready." : NO_ANSWERS, "", row("Console", `${restUrl}/console`)];
  if (signInPath) lines.push(row("  to sign in, open", `${restUrl}${signInPath}   (works once, within 15 minutes)`));
  lines.push(
    row("API reference", `${restUrl}/docs`),
    row("REST and SSE", restUrl),
    row("Connect, gRPC, gRPC-Web", rpcUrl),
    row("Models", modelsText(facts)),
  );
  if (offline) {
    lines.push(
      "",
      "  No vendor is configured, so the built-in offline models answer. They only extract and calculate.",
      "  To use real models, set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or write a catalogue file.",
    );
  }
  for (const problem of problems) lines.push("", ...wrapped(problem));
  lines.push(...secretLines(facts));
  const apiKey = facts.secretsFile ? undefined : facts.secrets.apiKey;
  const headers = `-H "X-API-Key: ${apiKey ?? "$CHORUS_API_KEY"}" -H "Content-Type: application/json"`;
  lines.push("", "Try it:", "", `  curl ${restUrl}/v1/generate ${headers} -d '{"prompt": "What is 17 * 23 + 4?"}'`, "");
  if (!apiKey) lines.push(`  (To create a key: ${COMMANDS.chorus} keys create --workspace default)`, "");
  return `${lines.join("\n")}\n`;
}

function secretLines({ secrets, secretsFile, dataDir, lacksOperator }: Greeting): string[] {
  const { apiKey, operatorToken } = secrets;
  if (lacksOperator) {
    return [
      "",
      "  There is no operator token yet. None is printed, because DATABASE_URL is set.",
      "  Set OPERATOR_TOKEN and BOOTSTRAP_API_KEY, or set CHORUS_SECRETS_FILE to the path of a file that the service",
      "  writes them to. Then start again.",
    ];
  }
  if (!apiKey && !operatorToken) return [];
  if (secretsFile) return ["", row("New secrets", `in ${secretsFile}; only its owner can read it`)];
  const file = operatorTokenFile(dataDir);
  return [
    "",
    ...(apiKey ? [row("API key", `${apiKey}   (shown only once)`)] : []),
    ...(operatorToken ? [row("Operator token", `${operatorToken}   (shown only once; kept in ${file})`)] : []),
  ];
}

function modelsText({ models, catalogue }: Greeting): string {
  const more = models.length > MAX_MODELS ? ` and ${models.length - MAX_MODELS} more` : "";
  const source = catalogue ? `from ${catalogue}` : "from the built-in catalogue";
  return `${models.slice(0, MAX_MODELS).join(", ")}${more}, ${source}`;
}

/** Lines of at most 116 characters, indented by two. */
function wrapped(text: string): string[] {
  return text.match(/(?=\S).{1,114}(?=\s|$)/g)?.map((line) => `  ${line}`) ?? [];
}

function row(name: string, value: string): string {
  return `  ${name.padEnd(23)} ${value}`;
}
