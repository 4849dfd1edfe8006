import { FAILURES, Failure } from "../../contract/failure.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes UTF-8 without its byte order mark. @throws Failure invalid_json */
export function decodeText(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new Failure("invalid_json", { message: "The body is not valid UTF-8. Encode it as UTF-8." });
  }
}

/** Parses a body that must be one JSON object. @throws Failure invalid_json */
export function parseBody(text: string): object {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidJson(cause);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Failure("invalid_json");
  return value;
}

/**
 * The failure of a body that is not JSON, with the place if V8's parser names one. It leaves out the rest of the
 * parser's text, which may quote the body.
 * @param cause what the parser threw
 */
export function invalidJson(cause: unknown): Failure {
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(cause instanceof SyntaxError ? cause.message : "") ?? [];
  if (line === undefined) return new Failure("invalid_json", { cause });
  const message = `${FAILURES.invalid_json.message} The JSON is not valid at line ${line}, column ${column}.`;
  return new Failure("invalid_json", { message, cause });
}
