import type { DescMessage } from "@bufbuild/protobuf";

/** Takes the next bytes of a body and returns the number of values in the body so far. */
export type ValueCounter = (bytes: Uint8Array) => number;

/** Bytes of a string that the JSON counter reads singly before it searches for the closing quote. */
const SHORT_STRING = 32;

/**
 * Length of the flag and size before each message of gRPC, gRPC-Web and Connect streams, in bytes; 0 for other types.
 */
export function prefixLength(contentType: string): number {
  return /^application\/(grpc|connect\+)/.test(contentType) ? 5 : 0;
}

/**
 * Counts the values of a body as its bytes arrive, in chunks of any size. Parsing creates an object for each value, so
 * a body of many small values would block the event loop for seconds (docs/decisions/http.md); counting needs no
 * memory.
 * @param desc type of the messages in the body
 * @param contentType a type of Connect, gRPC or gRPC-Web
 * @param onMessage receives the length in bytes that a message's prefix states, for types with prefixes
 */
export function createValueCounter(
  desc: DescMessage,
  contentType: string,
  onMessage: (length: number) => void,
): ValueCounter {
  const create = /json/.test(contentType) ? createJsonCounter : () => protoCounter(desc);
  let counter = create();
  const prefix = prefixLength(contentType);
  if (prefix === 0) return counter;
  let before = 0;
  let count = 0;
  let prefixLeft = prefix;
  let length = 0;
  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      if (prefixLeft > 0) {
        if (prefixLeft < prefix) length = length * 256 + (bytes[at] ?? 0);
        at++;
        if (--prefixLeft === 0) onMessage(length);
      } else {
        const part = bytes.subarray(at, at + length);
        at += part.length;
        length -= part.length;
        count = before + counter(part);
      }
      if (prefixLeft === 0 && length === 0) {
        prefixLeft = prefix;
        before = count;
        counter = create();
      }
    }
    return count;
  };
}

/**
 * Counts the lists, objects and commas of JSON text outside of strings. Text that is not JSON is left to the parser.
 */
export function createJsonCounter(): ValueCounter {
  let count = 0;
  let inString = false;
  let isEscaped = false;
  let read = 0;
  return (bytes) => {
    for (let at = 0; at < bytes.length; at++) {
      const byte = bytes[at];
      if (!inString) {
        inString = byte === 0x22;
        if (inString) read = 0;
        else if (byte === 0x2c || byte === 0x5b || byte === 0x7b) count++;
      } else if (isEscaped) isEscaped = false;
      else if (byte === 0x22) inString = false;
      else if (byte === 0x5c) isEscaped = true;
      else if (++read === SHORT_STRING) {
        // A search is faster than this loop for long strings, and slower for short ones.
        read = 0;
        const quote = bytes.indexOf(0x22, at + 1);
        const end = quote < 0 ? bytes.length : quote;
        isEscaped = backslashesBefore(bytes, end, at + 1) % 2 === 1;
        at = end - 1;
      }
    }
    return count;
  };
}

/** Number of consecutive backslashes that end before `end`, none of them before `start`. */
function backslashesBefore(bytes: Uint8Array, end: number, start: number): number {
  let first = end;
  while (first > start && bytes[first - 1] === 0x5c) first--;
  return end - first;
}

/** Counts the fields of a protobuf message and of its nested messages. Invalid bytes are left to the parser. */
function protoCounter(root: DescMessage): ValueCounter {
  // The messages that contain the next byte, innermost last, and the remaining bytes of each.
  const open: { desc: DescMessage; left: number }[] = [{ desc: root, left: Number.POSITIVE_INFINITY }];
  let count = 0;
  let skip = 0;
  let state: "tag" | "length" | "varint" = "tag";
  let value = 0;
  let unit = 1;
  let field = 0;

  function take(byte: number, inner: { desc: DescMessage; left: number }): void {
    inner.left--;
    value += (byte & 0x7f) * unit;
    unit *= 128;
    if (byte >= 0x80) return;
    const varint = value;
    value = 0;
    unit = 1;
    if (state === "tag") {
      count++;
      const wireType = varint % 8;
      field = Math.floor(varint / 8);
      if (wireType === 0) state = "varint";
      else if (wireType === 2) state = "length";
      else if (wireType === 1 || wireType === 5) {
        skip = wireType === 1 ? 8 : 4;
        inner.left -= skip;
      }
    } else {
      if (state === "length") enter(varint, inner);
      state = "tag";
    }
  }

  function enter(length: number, inner: { desc: DescMessage; left: number }): void {
    const desc = inner.desc.fields.find(({ number }) => number === field)?.message;
    inner.left -= length;
    if (desc) open.push({ desc, left: length });
    else skip = length;
  }

  return (bytes) => {
    for (let at = 0; at < bytes.length; ) {
      if (skip > 0) {
        const skipped = Math.min(skip, bytes.length - at);
        skip -= skipped;
        at += skipped;
        continue;
      }
      const isAtField = state === "tag" && unit === 1;
      while (isAtField && open.length > 1 && (open.at(-1)?.left ?? 0) <= 0) open.pop();
      const inner = open.at(-1);
      if (inner) take(bytes[at++] ?? 0, inner);
    }
    return count;
  };
}
