import { Unreadable } from "./attachment.ts";

/** Longest side in pixels that vendors accept: Anthropic rejects more than 8,000 × 8,000. */
const MAX_SIDE = 8000;

/** Longest side after vendors shrink an image, pixels per token, and most tokens of one image. */
const SHRUNK_SIDE = 1568;
const PIXELS_PER_TOKEN = 750;
const MAX_TOKENS = 1600;

/** Most segments before the picture of a JPEG. Colour profiles and camera previews take some tens of them. */
const MAX_SEGMENTS = 4096;

/**
 * Best possible compression: deflate packs at most 1,032 bytes into one, and a JPEG block of 64 pixels takes at least
 * one bit.
 */
const DEFLATE_RATIO = 1032;
const JPEG_PIXELS_PER_BYTE = 512;

export interface Size {
  /** In pixels, at least 1. */
  width: number;
  height: number;
}

/**
 * Tokens of an image: width × height / 750 after shrinking its longer side to 1,568 pixels, at most 1,600. Source:
 * "Calculate image costs" in Anthropic's guide to vision. The service uses it for every vendor, as it uses one
 * tokenizer for text.
 */
export function imageTokens({ width, height }: Size): number {
  const scale = Math.min(1, SHRUNK_SIDE / Math.max(width, height));
  return Math.max(1, Math.min(MAX_TOKENS, Math.ceil((width * height * scale * scale) / PIXELS_PER_TOKEN)));
}

/**
 * Reads an image's size from its header and checks that the file is complete, without decoding it.
 * @returns undefined if the bytes are not an image of that type
 * @throws Unreadable if it is cut off, too large, or has too little data for the size in its header
 */
export function imageSize(type: string, bytes: Uint8Array): Size | undefined {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    const size = READERS[type]?.(buffer);
    if (size) checkSize(size);
    return size;
  } catch (error) {
    // A Buffer throws a RangeError when it ends before the header.
    throw error instanceof RangeError ? truncated() : error;
  }
}

/**
 * Finds out what an image is. Many programs declare one type for images of every kind, so only the bytes say which.
 * @returns undefined if the bytes are no image of a type that models take
 * @throws Unreadable as `imageSize`
 */
export function identifyImage(bytes: Uint8Array): { mediaType: string; size: Size } | undefined {
  for (const mediaType of Object.keys(READERS)) {
    const size = imageSize(mediaType, bytes);
    if (size) return { mediaType, size };
  }
  return undefined;
}

const READERS: Readonly<Record<string, (bytes: Buffer) => Size | undefined>> = {
  "image/png": png,
  "image/jpeg": jpeg,
  "image/gif": gif,
  "image/webp": webp,
};

function png(bytes: Buffer): Size | undefined {
  if (bytes.toString("latin1", 0, 8) !== "\x89PNG\r\n\x1a\n" || bytes.toString("latin1", 12, 16) !== "IHDR")
    return undefined;
  if (bytes.indexOf("IEND", 33, "latin1") < 0) throw truncated();
  const size = { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
  // A pixel has at least one bit.
  if ((size.width / 8) * size.height > bytes.length * DEFLATE_RATIO) throw tooLittleData();
  return size;
}

/**
 * The frame header has the size. The picture begins at the scan header and ends with an end marker, which cannot
 * occur in its data.
 */
function jpeg(bytes: Buffer): Size | undefined {
  if (bytes.toString("latin1", 0, 3) !== "\xff\xd8\xff") return undefined;
  let size: Size | undefined;
  for (let at = 2, segments = 0; segments < MAX_SEGMENTS && bytes[at] === 0xff; segments += 1) {
    while (bytes[at + 1] === 0xff) at += 1;
    const marker = bytes.readUInt8(at + 1);
    if (marker === 0xda) {
      if (!size) throw damaged();
      if (bytes.indexOf("\xff\xd9", at, "latin1") < 0) throw truncated();
      if (size.width * size.height > (bytes.length - at) * JPEG_PIXELS_PER_BYTE) throw tooLittleData();
      return size;
    }
    // Frame headers are C0 to CF, except tables (C4, CC) and an extension (C8).
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) size ??= { height: bytes.readUInt16BE(at + 5), width: bytes.readUInt16BE(at + 7) };
    at += 2 + bytes.readUInt16BE(at + 2);
    if (at >= bytes.length) throw truncated();
  }
  throw damaged();
}

function gif(bytes: Buffer): Size | undefined {
  if (!/^GIF8[79]a$/.test(bytes.toString("latin1", 0, 6))) return undefined;
  const size = { width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
  if (bytes.lastIndexOf(0x3b) < 13) throw truncated();
  return size;
}

function webp(bytes: Buffer): Size | undefined {
  if (bytes.toString("latin1", 0, 4) !== "RIFF" || bytes.toString("latin1", 8, 12) !== "WEBP") return undefined;
  if (bytes.readUInt32LE(4) + 8 > bytes.length) throw truncated();
  const kind = bytes.toString("latin1", 12, 16);
  if (kind === "VP8X") return { width: 1 + bytes.readUIntLE(24, 3), height: 1 + bytes.readUIntLE(27, 3) };
  if (kind === "VP8L") {
    const bits = bytes.readUInt32LE(21);
    return { width: 1 + (bits & 0x3fff), height: 1 + ((bits >>> 14) & 0x3fff) };
  }
  if (kind === "VP8 ") return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
  throw damaged();
}

function checkSize({ width, height }: Size): void {
  if (width === 0 || height === 0) throw damaged();
  if (width > MAX_SIDE || height > MAX_SIDE) {
    throw new Unreadable(
      "data",
      `is an image of ${width} × ${height} pixels; a side may have ${MAX_SIDE} at most. Shrink it.`,
    );
  }
}

function truncated(): Unreadable {
  return new Unreadable("data", "is an image whose end is missing. Send the whole file.");
}

function damaged(): Unreadable {
  return new Unreadable("data", "is a damaged image. Save it again with another program.");
}

function tooLittleData(): Unreadable {
  return new Unreadable(
    "data",
    "is an image with too little data for the size in its header. Save it again with another program.",
  );
}
