/** Where the body of an HTTP message is, as offsets. */
export interface Frame {
  bodyStart: number;
  /** End of the message. May be greater than the number of received bytes; Infinity while chunks are missing. */
  end: number;
  chunked: boolean;
}

/**
 * Finds the end of the first HTTP/1.1 message in `bytes`, from Content-Length or from its chunks. Treats any other
 * message (one that ends with the connection) as a message without a body.
 * @returns undefined if the headers are incomplete
 */
export function frame(bytes: Buffer): Frame | undefined {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const bodyStart = headEnd + 4;
  const head = bytes.toString("latin1", 0, headEnd);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (length) {
    return { bodyStart, end: bodyStart + Number(length[1]), chunked: false };
  }
  const chunked = /\r\ntransfer-encoding: *chunked/i.test(head);
  return { bodyStart, end: chunked ? chunksEnd(bytes, bodyStart) : bodyStart, chunked };
}

function chunksEnd(bytes: Buffer, start: number): number {
  for (let at = start; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return Infinity;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    at = lineEnd + 2 + size + 2;
    if (at > bytes.length) return Infinity;
    if (size === 0) return at;
  }
}

/** The body of a complete message, with its chunks joined. */
export function bodyBytes(bytes: Buffer, { bodyStart, end, chunked }: Frame): Buffer {
  if (!chunked) return bytes.subarray(bodyStart, end);
  const parts: Buffer[] = [];
  for (let at = bodyStart; at < end; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
  return Buffer.concat(parts);
}
