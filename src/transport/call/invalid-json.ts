import { FAILURES, Failure } from "../../contract/failure.ts";

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
