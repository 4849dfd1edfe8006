/** Frames of HTTP/2 (RFC 9113, section 4.1), for connections that send what no client sends. */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

export const FRAME = { data: 0, headers: 1, reset: 3, settings: 4, ping: 6, goaway: 7, continuation: 9 };

export const FLAG = { endStream: 1, endHeaders: 4 };

/** @param stream its number; 0: the connection */
export function frame(type: number, flags: number, stream: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Settings without values. */
export const SETTINGS = frame(FRAME.settings, 0, 0);

/** A literal header field without indexing, with a name and a value of up to 127 bytes. */
export function field(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}
