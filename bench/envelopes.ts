/** An enveloped message of gRPC and of Connect's streams: a byte of flags, four bytes of length, the message. */
export interface Envelope {
  flags: number;
  message: Buffer;
}

const PREFIX_BYTES = 5;

/** Makes a reader that takes the bytes of a body in any split and returns the envelopes that are complete. */
export function createEnvelopeReader(): (bytes: Buffer) => Envelope[] {
  let pending: Buffer | undefined;
  return (data) => {
    const bytes = pending ? Buffer.concat([pending, data]) : data;
    const envelopes: Envelope[] = [];
    let at = 0;
    while (bytes.length - at >= PREFIX_BYTES) {
      const end = at + PREFIX_BYTES + bytes.readUInt32BE(at + 1);
      if (end > bytes.length) break;
      envelopes.push({ flags: bytes[at] ?? 0, message: bytes.subarray(at + PREFIX_BYTES, end) });
      at = end;
    }
    pending = at < bytes.length ? bytes.subarray(at) : undefined;
    return envelopes;
  };
}

/** Puts a message without compression into an envelope. */
export function envelope(message: Uint8Array): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}
