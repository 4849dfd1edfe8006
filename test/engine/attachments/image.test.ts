import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, it } from "vitest";
import { Unreadable } from "../../../src/engine/attachments/attachment.ts";
import { imageSize, imageTokens } from "../../../src/engine/attachments/image.ts";
import { png } from "./files.ts";

/** The segments of a JPEG: start, a preview inside a segment, frame header, scan header, picture, end. */
function jpeg(width: number, height: number, picture = 100, end = "ffd9"): Buffer {
  const hex = (value: number) => value.toString(16).padStart(4, "0");
  const frame = `ffc2000b08${hex(height)}${hex(width)}01011100`;
  return Buffer.from(`ffd8ffe10008ffd8ffdaffd9${frame}ffda0003aa${"5a".repeat(picture)}${end}`, "hex");
}

function gif(width: number, height: number): Buffer {
  const head = Buffer.from("GIF89a\0\0\0\0\0\0\0");
  head.writeUInt16LE(width, 6);
  head.writeUInt16LE(height, 8);
  return Buffer.concat([head, Buffer.from(",......;")]);
}

function webp(kind: string, body: string): Buffer {
  const chunk = Buffer.concat([Buffer.from(`WEBP${kind}\0\0\0\0`), Buffer.from(body, "hex")]);
  const head = Buffer.from("RIFF\0\0\0\0");
  head.writeUInt32LE(chunk.length, 4);
  return Buffer.concat([head, chunk]);
}

describe("imageSize", () => {
  it("reads the size of each type", () => {
    assert.deepEqual(imageSize("image/png", png(300, 200)), { width: 300, height: 200 });
    assert.deepEqual(imageSize("image/jpeg", jpeg(30, 20)), { width: 30, height: 20 });
    assert.deepEqual(imageSize("image/gif", gif(300, 200)), { width: 300, height: 200 });
    assert.deepEqual(imageSize("image/webp", webp("VP8X", "000000002b0100c70000")), { width: 300, height: 200 });
    assert.deepEqual(imageSize("image/webp", webp("VP8L", "2f2bc13100")), { width: 300, height: 200 });
    assert.deepEqual(imageSize("image/webp", webp("VP8 ", "0000009d012a2c01c800")), { width: 300, height: 200 });
  });

  it("finds no image in the bytes of another type", () => {
    const files = {
      "image/png": png(9, 9),
      "image/jpeg": jpeg(9, 9),
      "image/gif": gif(9, 9),
      "image/webp": webp("VP8X", "00000000000000000000"),
    };
    for (const declared of Object.keys(files)) {
      for (const [type, bytes] of Object.entries(files))
        assert.equal(imageSize(declared, bytes) !== undefined, declared === type);
    }
    assert.equal(imageSize("image/svg+xml", Buffer.from("<svg/>")), undefined);
  });

  it("refuses a header with a false size", () => {
    const refused = (type: string, bytes: Buffer, message: RegExp) =>
      assert.throws(
        () => imageSize(type, bytes),
        (error) => error instanceof Unreadable && error.part === "data" && message.test(error.message),
      );
    refused("image/png", png(50_000, 50_000, Buffer.alloc(50)), /too little data/);
    refused("image/png", png(7999, 7999, Buffer.alloc(50)), /too little data/);
    refused("image/png", png(8001, 1), /8001 × 1 pixels/);
    refused("image/png", png(0, 5), /damaged/);
    refused("image/jpeg", jpeg(7999, 7999), /too little data/);
    refused("image/gif", gif(65_535, 65_535), /65535 × 65535/);
    refused("image/webp", webp("VP8X", "00000000ffffffffffff"), /pixels/);
    refused("image/webp", webp("VP8?", "0000000000"), /damaged/);
  });

  it("refuses a file that is truncated at any byte", () => {
    const files = {
      "image/png": png(30, 30),
      "image/jpeg": jpeg(30, 20),
      "image/gif": gif(30, 20),
      "image/webp": webp("VP8X", "000000002b0100c70000"),
    };
    for (const [type, bytes] of Object.entries(files)) {
      for (let length = 16; length < bytes.length - 8; length += 1) {
        assert.throws(() => imageSize(type, bytes.subarray(0, length)), Unreadable, `${type} ${length}`);
      }
    }
    assert.throws(() => imageSize("image/jpeg", jpeg(30, 20, 100, "")), /end is missing/);
    assert.deepEqual(imageSize("image/jpeg", Buffer.concat([jpeg(30, 20), Buffer.alloc(99)])), {
      width: 30,
      height: 20,
    });
  });

  it("terminates for any bytes", () => {
    const heads = [png(9, 9), jpeg(9, 9), gif(9, 9), webp("VP8L", "2f2bc13100")].map((bytes) => bytes.subarray(0, 24));
    fc.assert(
      fc.property(
        fc.constantFrom(...heads),
        fc.nat({ max: 24 }),
        fc.uint8Array({ maxLength: 200 }),
        (head, length, rest) => {
          for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) {
            try {
              imageSize(type, Buffer.concat([head.subarray(0, length), rest]));
            } catch (error) {
              assert.ok(error instanceof Unreadable);
            }
          }
        },
      ),
    );
  });
});

it("imageTokens counts a token for 750 pixels, and at most 1,600", () => {
  assert.equal(imageTokens({ width: 1, height: 1 }), 1);
  assert.equal(imageTokens({ width: 200, height: 200 }), 54);
  assert.equal(imageTokens({ width: 1000, height: 1000 }), 1334);
  assert.equal(imageTokens({ width: 8000, height: 8000 }), 1600);
  assert.equal(imageTokens({ width: 8000, height: 80 }), imageTokens({ width: 1568, height: 15.68 }));
});
