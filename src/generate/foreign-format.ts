import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type GenerateRequestSchema,
  type Notice,
  OutputShape,
  ResponseFormatSchema,
} from "../../gen/chorus/v1/generation_pb.js";
import { Failure } from "../contract/failure.ts";
import { checkWhole } from "../engine/structured/check-whole.ts";
import { describeFormats } from "../engine/structured/describe-formats.ts";
import { simplifySchema } from "../engine/structured/simplify-schema.ts";
import { notice } from "./notices.ts";

/** A JSON Schema for an answer, as clients of other APIs ask for it. */
export interface ForeignFormat {
  /** JSON text. */
  readonly schema: string;
  /** What the answer is for; may be empty. */
  readonly description: string;
  /** False: an answer that does not follow the schema is better than none. */
  readonly strict: boolean;
  /** Path of the schema in the request. */
  readonly path: string;
}

type Fields = Pick<MessageInitShape<typeof GenerateRequestSchema>, "responseFormat" | "outputShape" | "system">;

/**
 * Asks for an answer that follows a schema of Pydantic, zod or another library. A schema that cannot be checked as a
 * whole is refused when the request is checked; if it need not be followed strictly, the model is shown the schema and
 * asked for JSON, and a notice says so.
 * @throws Failure `invalid_response_schema` naming the node
 */
export function readForeignFormat(format: ForeignFormat): { fields: Fields; notices: Notice[] } {
  const { schema, description, path } = format;
  // What is no schema at all is a mistake in every case.
  const strict = format.strict || !schema.startsWith("{");
  const purpose = description === "" ? "" : `Purpose of the answer's format: ${description}`;
  try {
    const described = schema === "" ? { schema, paths: [] } : describeFormats(schema, path);
    const simplified = schema === "" ? "" : simplifySchema(described.schema);
    // A strict one is checked with the other fields of the request.
    if (!strict) checkWhole(simplified, path);
    const value = { case: "jsonSchema" as const, value: { schema: simplified } };
    return {
      fields: { responseFormat: create(ResponseFormatSchema, { format: value }), system: purpose },
      notices: formatNotices(described.paths),
    };
  } catch (error) {
    if (strict || !(error instanceof Failure)) throw error;
    const system = [purpose, `The object must be valid against this JSON Schema: ${schema}`].join("\n").trim();
    const message = `${error.message} Because strict is not true, the answer was not checked against the schema.`;
    return {
      fields: { outputShape: OutputShape.EXTRACT, system },
      notices: [notice("schema_not_checked", message, error.field)],
    };
  }
}

/** The notice about the formats of a schema, which all clients write for dates and addresses. */
function formatNotices(paths: readonly string[]): Notice[] {
  const [first, ...others] = paths;
  if (first === undefined) return [];
  const more = others.length === 0 ? "" : ` and of ${others.length} more`;
  const message = `The model sees the format of ${first}${more}. The answer is not checked against it.`;
  return [notice("format_not_checked", message, first)];
}
