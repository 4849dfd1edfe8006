import { Failure } from "../../contract/failure.ts";

/**
 * The parameters of a request in OpenAI's format that became fields of a `GenerateRequest` under other names. The
 * service's failures name these fields.
 */
export interface Parameters {
  readonly maxTokens: "max_completion_tokens" | "max_tokens";
  readonly user: "safety_identifier" | "user";
  /** Paths of the parts that became attachments, and the parameters of their bytes and names. */
  readonly files: readonly FilePart[];
}

export interface FilePart {
  readonly path: string;
  readonly data: "image_url.url" | "file.file_data";
}

/** Renames the field of a failure, in its message too, to the parameter that the caller has sent. */
export function withParameter(failure: Failure, parameters: Parameters): Failure {
  const { field } = failure;
  const parameter = field === undefined ? undefined : parameterOf(field, parameters);
  if (field === undefined || parameter === undefined) return failure;
  const { kind, limit, retryAfterMs, cause } = failure;
  const name = field.endsWith(".media_type") ? `The media type of ${parameter}` : parameter;
  return new Failure(kind, {
    message: failure.message.replaceAll(field, name),
    field: parameter,
    cause,
    ...(limit === undefined ? {} : { limit }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

function parameterOf(field: string, { maxTokens, user, files }: Parameters): string | undefined {
  if (field === "max_tokens") return maxTokens;
  if (field === "user") return user;
  if (field === "attachments") return "messages";
  const [, index = "", member = ""] = /^attachments\[(\d+)\](?:\.(\w+))?$/.exec(field) ?? [];
  const file = files[Number(index)];
  if (index !== "" && file) {
    if (member === "") return file.path;
    return `${file.path}.${member === "name" ? "file.filename" : file.data}`;
  }
  if (field.startsWith("stop_sequences")) return field.replace("stop_sequences", "stop");
  if (field.startsWith("response_format.schema")) return field.replace("schema", "json_schema.schema");
  if (field === "tags" || field.startsWith("tags.")) return field.replace("tags", "metadata");
  return undefined;
}
