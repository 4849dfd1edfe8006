import { create } from "@bufbuild/protobuf";
import { type Attachment, AttachmentSchema } from "../../../gen/chorus/v1/generation_pb.js";
import { invalid } from "../../contract/failure.ts";
import { decodeBase64 } from "../rest/decode.ts";

/** The files of a conversation, and the parameters that they came from. */
export class Files {
  readonly attachments: Attachment[] = [];
  readonly names: (readonly [field: string, parameter: string])[] = [];

  /**
   * Adds a file from a `data:` URL in base64 (RFC 2397).
   * @param message index of its message in the request
   * @param path of the part of a message
   * @param members names of the members of the part that have the URL and the name
   * @throws Failure invalid_request naming the parameter
   */
  add(message: number, path: string, members: { data: string; name: string }, url: string, name = ""): void {
    const [data, field] = [`${path}.${members.data}`, `attachments[${this.attachments.length}]`];
    this.attachments.push(create(AttachmentSchema, { name, message, ...read(data, url) }));
    this.names.push([field, path], [`${field}.name`, `${path}.${members.name}`]);
    this.names.push([`${field}.data`, data], [`${field}.media_type`, data]);
  }
}

function read(parameter: string, url: string): { mediaType: string; data: Uint8Array } {
  const comma = url.indexOf(",");
  const head = url.slice(0, Math.max(0, comma));
  if (!/^data:.*;base64$/i.test(head)) {
    const expected = 'a URL such as "data:image/png;base64,…"';
    throw invalid(parameter, `${parameter} must be ${expected}. The service loads no other URLs.`);
  }
  const data = decodeBase64(url.slice(comma + 1));
  if (!data) throw invalid(parameter, `${parameter} must have base64 after the comma, without spaces and line breaks.`);
  return { mediaType: head.slice("data:".length, -";base64".length), data };
}
