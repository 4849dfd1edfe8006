import {
  type DescMessage,
  fromBinary,
  fromJson,
  fromJsonString,
  type JsonValue,
  type MessageShape,
} from "@bufbuild/protobuf";
import { EmptySchema } from "@bufbuild/protobuf/wkt";
import { GenerateRequestSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { Failure, invalid } from "../../contract/failure.ts";
import { type BodyForm, type Decoded, PREFIX_BYTES } from "../call/format.ts";
import { invalidJson } from "../call/json-body.ts";
import { addUnknown, reportedPath, type UnknownMembers } from "../call/unknown-members.ts";
import { isObject, normalize, wrongIn } from "./json-message.ts";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Decodes the request of a method. Members of JSON that the message does not have are noticed where the response has
 * notices, and otherwise refused.
 * @throws Failure; see `unwrap` and `parseMessage`
 */
export function decodeMessage<D extends DescMessage>(
  desc: D,
  body: Uint8Array,
  { name, isWrapped }: BodyForm,
): Decoded<MessageShape<D>> {
  const found: UnknownMembers = { unknown: [], more: 0 };
  const takes = (desc as DescMessage) === GenerateRequestSchema ? found : undefined;
  return { request: parseMessage(desc, isWrapped ? unwrap(body) : body, name === "json", takes), ...found };
}

/**
 * Takes the message out of a body with an envelope: gRPC, gRPC-Web or a Connect stream.
 * @throws Failure unsupported_compression or invalid_request
 */
function unwrap(body: Uint8Array): Uint8Array {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength);
  const flags = body[0] ?? 0;
  if (flags === 1) throw new Failure("unsupported_compression");
  if (flags !== 0 || body.length < PREFIX_BYTES || view.getUint32(1) !== body.length - PREFIX_BYTES)
    throw new Failure("invalid_request", { message: "The body must hold exactly one message with its prefix." });
  return body.subarray(PREFIX_BYTES);
}

/**
 * Parses a message in protobuf's JSON or binary format. JSON may also use the enum words of the public contract.
 * @param found receives the members of JSON that the message does not have; undefined: they are refused, because the
 *   call has no other way to tell that they were dropped
 * @throws Failure invalid_json, or invalid_request with the path of the field, without the parser's text, which may
 *   quote the body
 */
function parseMessage<D extends DescMessage>(
  desc: D,
  bytes: Uint8Array,
  json: boolean,
  found: UnknownMembers | undefined,
): MessageShape<D> {
  if (json) return parseJson(desc, bytes, found);
  try {
    return fromBinary(desc, bytes);
  } catch (cause) {
    const message = `The message is not a ${desc.typeName} in protobuf's binary format.`;
    throw new Failure("invalid_request", { message, cause });
  }
}

function parseJson<D extends DescMessage>(desc: D, bytes: Uint8Array, found?: UnknownMembers): MessageShape<D> {
  let text: string;
  let value: JsonValue;
  try {
    text = utf8.decode(bytes);
    value = JSON.parse(text);
  } catch (cause) {
    throw invalidJson(cause);
  }
  if (!isObject(value)) throw new Failure("invalid_json");
  if (!found) refuseRepeated(text);
  normalize(desc, value, "", found ? (path) => addUnknown(found, path) : refuseUnknown);
  try {
    return fromJson(desc, value);
  } catch (error) {
    throw wrongIn(desc, value, "") ?? new Failure("invalid_json", { cause: error });
  }
}

function refuseUnknown(path: string): never {
  const name = reportedPath(path);
  throw invalid(name, `${name} is not a field of this request. Leave it out.`);
}

/**
 * Refuses an object that has a member twice, of which JSON.parse keeps the last. Protobuf's own parser finds it.
 * @throws Failure invalid_request with the member's name
 */
function refuseRepeated(text: string): void {
  try {
    fromJsonString(EmptySchema, text, { ignoreUnknownFields: true });
  } catch (error) {
    const found = /duplicate object key "(.*)"$/s.exec(error instanceof Error ? error.message : "");
    const name = reportedPath(found?.[1] ?? "");
    throw invalid(name, `${name} stands twice in the same object. Send it once.`);
  }
}
